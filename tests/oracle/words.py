"""What the process functions of the oracle do, in words (``function.words`` of a scenario).

*Its time* is a record's ``ts``, *now* the current watermark, *a timer* one of event time; with
``time_domain`` ``processing_time`` they are the clock when the record came, the clock, and a timer
of processing time. *Emit* names fields that follow ``key``.
"""

from __future__ import annotations

#: Those of kind ``process``, by ``function.type``.
PROCESS = {
    "inactivity": (
        "state: count, last_ts = max ts seen, one timer. Each record: count + 1; if ts > last_ts: "
        "delete the pending timer, last_ts = ts, register an event-time timer at ts + param_ms. "
        "On the timer: emit timer, count, last_ts and the current watermark, clear everything."
    ),
    "count_with_timeout": (
        "each record: count + 1, last = ts of this record (not the max), register an event-time "
        "timer at ts + param_ms; never delete. On a timer: emit only if timer == last + param_ms; "
        "nothing is cleared."
    ),
    "timer_per_element": (
        "each record registers a timer at ts + param_ms and counts (after registering); same key "
        "and timestamp is one timer. On a timer: emit timer, the count and the current watermark."
    ),
    "align_and_chain": (
        "each record: append its seq to a list, register a timer at floor(ts / param_ms) * "
        "param_ms + param_ms, set remaining = 3 if unset. On a timer: emit the list and remaining "
        "(0 if unset), clear the list; if remaining > 1: decrement it and register timer + "
        "param_ms, else unset it."
    ),
    "delete_on_negative": (
        "no state. A record with value >= 0 registers a timer at ts + param_ms, one with value < 0 "
        "deletes the timer at ts + param_ms. On a timer: emit timer."
    ),
    "watermark_probe": (
        "no state, no timers; param_ms is not used. Each record: emit watermark (the current one) "
        "and element_ts."
    ),
    "state_and_timer": (
        "state: a value. Each record: if no value is kept, emit how=input and value, then keep the "
        "value, then register a timer at now + param_ms; else clear the kept value, then delete "
        "the timer at now + param_ms - 1 (which may not be there). On a timer: emit how=state, "
        "timer and value (the kept one, null if none is); nothing is cleared."
    ),
    "both_timers": (
        "no state. A record with value >= 0, in this order: register a processing-time timer at "
        "ts + 3 * param_ms, an event-time timer at ts + 4 * param_ms, a processing-time timer at "
        "ts + 5 * param_ms, an event-time timer at ts + 6 * param_ms; delete the processing-time "
        "timer at ts + 3 * param_ms, the event-time timer at ts + 4 * param_ms. A record with "
        "value < 0: delete the processing-time timer at ts + 5 * param_ms, then the event-time "
        "timer at ts + 6 * param_ms. On a timer: emit timer, time_domain (event_time or "
        "processing_time), watermark (the current one) and clock."
    ),
    "timers_in_timers": (
        "state: remaining. A record with value < 0: register a timer at its time - 1. A record "
        "with value >= 0: remaining = floor(value) mod 5, then register a timer at its time + "
        "param_ms. On a timer: emit timer, remaining (0 if unset) and now; if remaining > 0: "
        "decrement it; if it was odd, register a timer at timer + param_ms, if it was even, one at "
        "timer - param_ms and then one at timer + 2 * param_ms."
    ),
    "reducing_and_map": (
        "states: seqs (list), counts (map), sum (reducing: adds), mean (aggregating: the sum and "
        "the number of what was added; its result is their quotient). Each record: bucket = "
        "floor(value) mod 3 (0, 1 or 2 for negative values too). value >= 0: append seq to seqs; "
        "counts[bucket] + 1 (from 0 if it is not there); add value to sum and to mean. value < 0: "
        "replace seqs by this one seq (update), remove bucket from counts, clear sum; mean stays. "
        "Then emit how=record and the states: seq (the list), counts ([bucket, count] in order of "
        "bucket), empty (whether counts is), sum and mean (null if nothing was added since they "
        "were cleared). Then register a timer at its time + param_ms. On a timer: emit how=timer, "
        "timer and the states as above; then clear all four."
    ),
    "ttl": (
        "states with a time to live of param_ms by the clock, StateTtlConfig with "
        "NeverReturnExpired (what was updated at time t is seen while clock < t + param_ms): value "
        "(a value), map (each entry lives by itself) and list (each element lives by itself) are "
        "updated by writing (OnCreateAndWrite), read (a value) by writing and by reading "
        "(OnReadAndWrite). Each record: first read all four, and emit how=record, seq, clock, "
        "value, map ([key, value] in order of key), list and read, where what is not seen is null "
        "or not in the list. Then, if value < 0, nothing else; else n = floor(value), and n mod "
        "5 = 0: value = value; 1: map[n div 5 mod 3] = value; 2: append value to list; 3: read = "
        "value; 4: all these four. Then register a processing-time timer at clock + param_ms - 1. "
        "On a timer: read all four, and emit how=timer, timer, clock, value, map, list and read as "
        "above; nothing is written."
    ),
    "side_outputs": (
        "tags first and second; state: count. Each record makes how=record, value, seq: to first "
        "if value < 0, else to the main output; and to second as well if value >= 20. Then "
        "count + 1, then register a timer at its time + param_ms. On a timer: how=timer, timer, "
        "count (0 if unset) to the main output, to second, and if count >= 3 to first. Then clear "
        "count."
    ),
}
#: Those of kind ``co_process``.
CO_PROCESS = {
    "threshold_rules": (
        "left = events, right = rules (value = threshold). Left without a known threshold is "
        "buffered (list state); right sets the threshold, emits the buffered lefts of the key with "
        "value > threshold in buffer order (how=buffered), clears the buffer, deletes the key's "
        "pending timer and registers one at right.ts + param_ms; left with a known threshold emits "
        "if value > threshold (how=direct). On the timer: emit rule_expired, forget the threshold."
    ),
    "pair_or_timeout": (
        "left and right of one key wait for each other at most param_ms of event time. Left: if a "
        "right value waits, emit a pair and clear it and its timer; else buffer the left and, if "
        "the key has no timer, register one at left.ts + param_ms. Right: if lefts wait, emit one "
        "pair per buffered left in order, clear them and the timer; else keep the right value "
        "(overwriting), delete the key's old timer and register right.ts + param_ms. On the timer: "
        "emit timeout with the waiting seqs/value and clear all."
    ),
    "co_side_outputs": (
        "tags rejected and unmatched; states: lefts (list), the key's timer. Left with value < 0: "
        "how=left, value, seq to rejected, and nothing else. Any other left: append it to lefts; "
        "if the key has no timer, register one at its time + param_ms. Right (of any value): for "
        "each of lefts in order how=pair, left, right, left_seq, right_seq to the main output; if "
        "there is none, how=right, value, seq to unmatched. Then clear lefts, delete the key's "
        "timer if it has one, and forget it. On the timer: for each of lefts in order how=left, "
        "value, seq, timer to unmatched; how=timeout, timer, waiting (the number of lefts) and now "
        "to the main output. Then clear lefts and forget the timer."
    ),
}
_RULES = (
    "broadcast state: rules, name -> threshold; keyed state: count. Broadcast element (right): its "
    "key is the name of a rule; value >= 0 sets rules[name] = value, value < 0 removes it; then "
    "emit, with key null, how (set or removed), rule (the name), threshold (the new one; if "
    "removed, the one it had, null if it was not there), rules (after this: [name, threshold] in "
    "order of name) and now. Row (left): count + 1; for each rule in order of name with threshold "
    "<= value emit how=match, value, seq, rule, threshold; if there is none emit how=none, value, "
    "seq. Then register a timer at its time + param_ms. On a timer: emit how=timer, timer, count "
    "(null if unset), rules (as above, of this moment) and now. Then clear count."
)
#: Those of kind ``broadcast_process``.
BROADCAST_PROCESS = {
    "rules": _RULES,
    "rules_side_outputs": (
        "tags rejected and replaced. As rules, but: row with value < 0: value, seq to rejected, "
        "and nothing else. Broadcast element of a rule that is there (it sets or removes it): "
        "besides, with key null, rule, threshold (the one it had), seq to replaced. rules: "
        f"{_RULES}"
    ),
    "broadcast_probe": (
        "no state. Broadcast element (right): emit, with key null, how=broadcast, value and now. "
        "Row (left): emit how=row, value and now; then register a timer at now + param_ms. On a "
        "timer: emit how=timer, timer and now."
    ),
}
WORDS = {**PROCESS, **CO_PROCESS, **BROADCAST_PROCESS}
#: What is said before the words of a function that were written for event time.
BY_THE_CLOCK = (
    "time_domain processing_time: for ts (of a record, and in last_ts) read the clock when the "
    "record came; all timers are of processing time. "
)
_OF_EVENT_TIME = {
    *("inactivity", "count_with_timeout", "timer_per_element", "align_and_chain"),
    *("delete_on_negative", "threshold_rules", "pair_or_timeout"),
}


def function(kind: str, param_ms: int, time_domain: str = "event_time") -> dict[str, object]:
    """Return ``operator.function``, with its words."""
    clock = time_domain == "processing_time"
    before = BY_THE_CLOCK if clock and kind in _OF_EVENT_TIME else ""
    domain = {"time_domain": time_domain} if clock else {}
    return {"type": kind, "param_ms": param_ms, **domain, "words": before + WORDS[kind]}
