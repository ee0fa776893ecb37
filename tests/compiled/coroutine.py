"""Kernels whose threads take turns, as coroutines: each runs up to where it is left.

That is a barrier; or, so that threads that do not wait for each other come in between, each time
before an element of an array is read, written or changed by an atomic. So one thread of the system
runs all threads of a block. LLVM makes the coroutines ("Coroutines in LLVM", the switched-resume
lowering).
"""

from __future__ import annotations

import itertools
import re

#: The call in the text of a kernel.
_WAIT = re.compile(r"^\s*call void @\"?gw\.barrier\"?\(\)\s*$", re.MULTILINE)
#: The address of an element; what is of a struct has more than one index.
_ELEMENT = re.compile(
    r"^\s*(%\"?[\w.$]+\"?) = getelementptr (?:i\d+|double), ptr [^,\n]+, i64 [^,\n]+$", re.MULTILINE
)
_ACCESS = re.compile(
    r"^.*\b(?:load|store|atomicrmw|cmpxchg)\b.*\bptr (%\"?[\w.$]+\"?).*$", re.MULTILINE
)
_BEGIN = """
  %gw.id = call token @llvm.coro.id(i32 0, ptr null, ptr null, ptr null)
  %gw.size = call i64 @llvm.coro.size.i64()
  %gw.memory = call ptr @malloc(i64 %gw.size)
  %gw.handle = call noalias ptr @llvm.coro.begin(token %gw.id, ptr %gw.memory)
"""
_END = """
gw.last:
  %gw.over = call i8 @llvm.coro.suspend(token none, i1 true)
  switch i8 %gw.over, label %gw.left [i8 0, label %gw.never i8 1, label %gw.cleanup]
gw.never:
  unreachable
gw.cleanup:
  %gw.taken = call ptr @llvm.coro.free(token %gw.id, ptr %gw.handle)
  call void @free(ptr %gw.taken)
  br label %gw.left
gw.left:
  call void @llvm.coro.end(ptr %gw.handle, i1 false, token none)
  ret ptr %gw.handle
}
"""
DECLARED = """
declare token @llvm.coro.id(i32, ptr, ptr, ptr)
declare i64 @llvm.coro.size.i64()
declare ptr @llvm.coro.begin(token, ptr)
declare i8 @llvm.coro.suspend(token, i1)
declare ptr @llvm.coro.free(token, ptr)
declare void @llvm.coro.end(ptr, i1, token)
declare ptr @malloc(i64)
declare void @free(ptr)
"""


_GO = """
define void @gw.go(ptr %handle) {
  %done = call i1 @llvm.coro.done(ptr %handle)
  br i1 %done, label %over, label %on
on:
  call void @llvm.coro.resume(ptr %handle)
  ret void
over:
  ret void
}"""


def as_coroutine(text: str, *, interleaved: bool = False) -> str:
    """Return a kernel's module in which the kernel returns a coroutine, run up to its first stop.

    Parameters
    ----------
    text : str
        The kernel is its only function that is defined, and has no ``phi``.
    interleaved : bool
        Whether it stops at elements of arrays; else at barriers.
    """
    assert " phi " not in text, "a barrier splits a block, which a phi may name"
    head, begin, rest = re.split(r"(\bentry:\n)", text, maxsplit=1)
    body, rest = rest.split("\n}", 1)
    head = re.sub(r"^define void (.*)\n\{", r"define ptr \1 presplitcoroutine\n{", head, flags=re.M)
    numbers = itertools.count()

    elements = set(_ELEMENT.findall(body))

    def left() -> str:
        n = next(numbers)
        return (
            f"  %gw.back{n} = call i8 @llvm.coro.suspend(token none, i1 false)\n"
            f"  switch i8 %gw.back{n}, label %gw.left "
            f"[i8 0, label %gw.on{n} i8 1, label %gw.cleanup]\n"
            f"gw.on{n}:"
        )

    def left_before(access: re.Match[str]) -> str:
        return f"{left()}\n{access[0]}" if access[1] in elements else access[0]

    if interleaved:
        body = _ACCESS.sub(left_before, body)
    else:
        body = _WAIT.sub(lambda _: left(), body)
    body = body.replace("ret void", "br label %gw.last")
    rest = re.sub(r"^declare void @\"?gw\.barrier\"?\(\)$", "", rest, flags=re.M)
    return f"{head}{begin}{_BEGIN}{body}{_END}{rest}{DECLARED}"


def runner(kernel: str, parameters: tuple[str, ...], loads: str) -> str:
    """Return functions that begin, resume and end the threads of a block.

    ``gw.begin(parameters, handles, threads, backwards)``, ``gw.resume(handles, threads,
    backwards)``, ``gw.end(handles, threads)``; ``gw.over(handles, threads)`` returns how many
    have come to their end.

    Parameters
    ----------
    kernel : str
        Its name, as the text has it.
    parameters : tuple of str
        Types of its parameters.
    loads : str
        What loads them from ``%parameters`` into ``%v0`` and so on.
    """
    arguments = ", ".join(f"{dtype} %v{n}" for n, dtype in enumerate(parameters))
    begin = f"""
  store i32 %t, ptr @gw.at.tid
  %made = call ptr {kernel}({arguments})
  store ptr %made, ptr %place
"""
    resume = """
  store i32 %t, ptr @gw.at.tid
  call void @gw.go(ptr %handle)
"""
    over = """
  %done = call i1 @llvm.coro.done(ptr %handle)
  %one = zext i1 %done to i32
  %sum = load i32, ptr %total
  %more = add i32 %sum, %one
  store i32 %more, ptr %total
"""
    end = "  call void @llvm.coro.destroy(ptr %handle)\n"
    return "\n".join(
        [
            f"declare ptr {kernel}({', '.join(parameters)})",
            "declare void @llvm.coro.resume(ptr)",
            "declare i1 @llvm.coro.done(ptr)",
            "declare void @llvm.coro.destroy(ptr)",
            _GO,
            for_each_thread("gw.begin", "ptr %parameters, ", begin, before=loads),
            for_each_thread("gw.resume", "", resume),
            for_each_thread("gw.over", "", over),
            for_each_thread("gw.end", "", end),
        ]
    )


def for_each_thread(name: str, more: str, body: str, before: str = "") -> str:
    """Return a function that does something for every thread of a block."""
    return f"""
define i32 @{name}({more}ptr %handles, i32 %threads, i32 %backwards) {{
entry:
  %total = alloca i32
  store i32 0, ptr %total
  {before}
  %last = sub i32 %threads, 1
  br label %loop
loop:
  %n = phi i32 [0, %entry], [%n.next, %loop]
  %opposite = sub i32 %last, %n
  %turned = icmp ne i32 %backwards, 0
  %t = select i1 %turned, i32 %opposite, i32 %n
  %place = getelementptr ptr, ptr %handles, i32 %t
  %handle = load ptr, ptr %place
{body}
  %n.next = add i32 %n, 1
  %again = icmp slt i32 %n.next, %threads
  br i1 %again, label %loop, label %out
out:
  %result = load i32, ptr %total
  ret i32 %result
}}"""
