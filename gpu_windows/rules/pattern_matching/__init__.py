"""The automaton of a pattern: Flink's NFA of strictly contiguous rows, as scalar functions.

Like `gpu_windows.rules`, each function is written once and runs under CPython and ``numba.njit``.

A pattern is a sequence of variables, each with a quantifier, and no row within a match is left out.
So the rows of a variable follow those of the one before it, and a partial match is its state, its
first row and one end for each variable: there is no buffer of shared rows, as Flink's.

Source: org.apache.flink.cep.nfa.NFA, .nfa.compiler.NFACompiler, .nfa.aftermatch.
"""

from __future__ import annotations

from gpu_windows.rules.pattern_matching import conditions, giving, heap, matching, partials

#: The modules whose functions kernels compile.
COMPILED = (conditions, heap, partials, giving, matching)
