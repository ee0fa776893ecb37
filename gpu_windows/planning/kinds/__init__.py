"""The kinds of queries: what each computes, how it is checked and how it is planned."""
