"""Calls dealt out to threads: those that need the same program wait until one has compiled it."""

import concurrent.futures
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Generic, NamedTuple, TypeVar

from fluidcc.memory import in_place

T = TypeVar("T")
_compiled: set[Hashable] = set()


class Call(NamedTuple, Generic[T]):
    """Something to do, and a name for the program that it compiles if no other call did."""

    program: Hashable
    run: Callable[[], T]


def in_turns(calls: Sequence[Call[T]], threads: int) -> Iterator[tuple[int, T | ValueError]]:
    """The number of each call and what it returns, as calls end.

    A ValueError stands for what it returns; what need the same program have the one of the first.
    """
    waiting: dict[Hashable, list[int]] = {}
    now = []
    for number, call in enumerate(calls):
        if call.program in _compiled:
            now.append(number)
        elif call.program in waiting:
            waiting[call.program].append(number)
        else:
            waiting[call.program] = []
            now.append(number)

    def called(number: int) -> T:
        return calls[number].run()

    run = in_place(called)
    pool = concurrent.futures.ThreadPoolExecutor(threads)
    try:
        going = {pool.submit(run, number): number for number in now}
        while going:
            done, _ = concurrent.futures.wait(going, return_when=concurrent.futures.FIRST_COMPLETED)
            for future in done:
                number = going.pop(future)
                program = calls[number].program
                others = waiting.pop(program, [])
                try:
                    found: T | ValueError = future.result()
                except ValueError as error:
                    yield from ((k, error) for k in (number, *others))
                    continue
                _compiled.add(program)
                going |= {pool.submit(run, k): k for k in others}
                yield number, found
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
