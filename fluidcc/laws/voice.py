"""Voice calls that share a link with the flows: their load, and the capacity that they leave."""

import functools
import heapq
import itertools
import math
from typing import Any, NamedTuple

import numpy as np

from fluidcc import ops
from fluidcc.laws.parameters import EVENTS, Info, Interval, check_fields, choice, param
from fluidcc.module import Module, static
from fluidcc.ops import Num

_BLOCK = 64  # talk spurts and pauses drawn at once for each call


def erlang_blocking(offered: Num, most: Num) -> Num:
    """Share of calls that find `most` others and are refused (Erlang's formula B).

    `offered` is the load in calls (arrivals per second times mean duration), `most` a whole
    number; an infinite one refuses none.
    """
    if isinstance(offered, float | int) and isinstance(most, float | int):
        steps = int(most) if math.isfinite(most) else -1
        refused = 1.0 if steps >= 0 else 0.0
        for k in range(1, steps + 1):
            refused = offered * refused / (k + offered * refused)
        return refused
    return _blocking()(offered, most)


@functools.cache
def _blocking() -> Any:
    """Erlang's formula for arrays."""
    from fluidcc.arrays import jax, jnp

    @jax.custom_jvp
    @jax.jit
    def blocking(offered: Num, most: Num) -> Num:
        steps = jnp.where(jnp.isfinite(most), most, 0.0)

        def another(k: Num, refused: Num) -> Num:
            return offered * refused / (k.astype(float) + offered * refused)

        refused = jax.lax.fori_loop(1, steps.astype(int) + 1, another, jnp.ones(()))
        return jnp.where(jnp.isfinite(most), refused, 0.0)

    @blocking.defjvp
    def slope(at: tuple[Num, Num], change: tuple[Num, Num]) -> tuple[Num, Num]:
        """In the load alone: B' = B (n/a - 1 + B), which the recursion gives by induction."""
        offered, most = at
        refused = blocking(offered, most)
        finite = jnp.isfinite(most) & (offered > 0)
        odds = jnp.where(finite, most, 0.0) / jnp.where(finite, offered, 1.0)
        return refused, refused * (odds - 1 + refused) * change[0]

    def of_floats(offered: Num, most: Num) -> Num:
        return blocking(jnp.asarray(offered, float), jnp.asarray(most, float))

    return of_floats


class Held(NamedTuple):
    """A rate that changes at `times` [s] and is held in between.

    `rates` has one value more than `times`, the first holds before the first change.
    """

    times: np.ndarray
    rates: np.ndarray


class Voice(Module):
    """Voice calls on a link: talkers on and off, calls that come and go. Misra and Ott (2003), 4.

    Calls arrive at random and last an exponential time; beyond `most` they are refused. Given
    `calls`, which is their mean number, they arrive as often as that takes and none is refused. In
    a call exponential talk spurts and pauses alternate (ITU-T P.59: means of 1.004 s and 1.587 s).
    By weighted fair queueing (`wfq`) the best-effort queue is served by what the calls leave, and
    by its own share at least; in one queue (`fifo`) the calls are traffic that no signal slows.
    In packets a talker sends one every `frame`, and the two queues are served by self-clocked fair
    queueing; `process` and `seed` are those of the fluid model.

    Examples
    --------
    >>> import fluidcc as fc
    >>> voice = fc.load("misra2003/persistent_mod").links[0].voice
    >>> voice.holding, voice.discipline
    (100.0, 'wfq')
    """

    calls: Num | None = param(
        None, r"\bar n_v", unit="1", doc="mean number of calls; or give arrivals", within="[0, inf)"
    )
    arrivals: Num | None = param(
        None, r"\lambda", unit="1/s", doc="arrival rate of calls; or give calls", within="[0, inf)"
    )
    holding: Num = param(
        100.0, r"1/\mu", unit="s", doc="mean duration of a call", within="(0, inf)"
    )
    most: Num = param(
        float("inf"), r"n_{\max}", unit="1", doc="most calls at once; with arrivals",
        within="[1, inf]",
    )  # fmt: skip
    codec: Num = param(
        64e3, "r_v", unit="bit/s", doc="rate of a talker without headers", within="(0, inf)"
    )
    active: Num = param(
        0.3875, "a", unit="1", doc="share of time that a call talks", within="(0, 1]"
    )
    talk: Num = param(1.004, "T_a", unit="s", doc="mean talk spurt", within="(0, inf)")
    overhead: Num = param(
        0.0, "h", unit="1", doc="bytes of headers per byte of speech", within="[0, inf)"
    )
    frame: Num = param(
        0.02, "T_f", unit="s", doc="speech in a packet; rounded to bytes", within="(0, inf)",
        engines=("population", *EVENTS),
    )  # fmt: skip
    drain: Num = param(
        0.02, "T_q", unit="s", doc="time that a full queue of voice takes at its weight",
        within="(0, inf]", engines=EVENTS,
    )  # fmt: skip
    share: Num = param(
        0.8, r"\phi_v", unit="1", doc="weight of voice; best effort has the rest", within="(0, 1)"
    )
    discipline: str = choice("wfq", "wfq", "fifo", doc="two queues by weights, or one for all")
    process: str = choice(
        "mean", "mean", "modulated", doc="the mean rate, or calls and talkers at random",
        engines=("fluid",),
    )  # fmt: skip
    seed: int = static(
        1,
        info=Info("", "1", "seed of the random process", Interval("[0, inf)"), engines=("fluid",)),
    )

    def __post_init__(self) -> None:
        """Raise ValueError for values out of range or that contradict each other."""
        if self.seed != int(self.seed):
            raise ValueError(f"voice needs a seed that is a whole number, got {self.seed!r}")
        object.__setattr__(self, "seed", int(self.seed))
        check_fields(self, "voice")
        if (self.calls is None) == (self.arrivals is None):
            given = "neither" if self.calls is None else "both"
            raise ValueError(f"voice needs either calls or arrivals, got {given}")
        if isinstance(self.most, int | float) and math.isfinite(self.most):
            if self.most != int(self.most):
                raise ValueError(f"voice needs a whole number as most, got {self.most!r}")
            if self.arrivals is None:
                raise ValueError(f"voice needs arrivals, not calls, with most, got {self.most!r}")

    def offered(self) -> Num:
        """Offered load [erlang]."""
        return self.calls if self.arrivals is None else self.arrivals * self.holding

    def carried(self) -> Num:
        """Mean number of calls in progress."""
        if self.arrivals is None:
            return self.calls
        return self.offered() * (1 - erlang_blocking(self.offered(), self.most))

    def silence(self) -> Num:
        """Mean time between talk spurts [s]."""
        return self.talk * (1 - self.active) / self.active

    def talker(self, packet_size: Num) -> Num:
        """Rate of one talker [packet/s], in packets of `packet_size` bytes."""
        return self.codec * (1 + self.overhead) / (8 * packet_size)

    def frame_bytes(self) -> Num:
        """Bytes of a packet of speech, headers included."""
        return self.codec * self.frame / 8 * (1 + self.overhead)

    def mean(self, packet_size: Num) -> Num:
        """Mean rate of all calls [packet/s], in packets of `packet_size` bytes."""
        return self.carried() * self.active * self.talker(packet_size)

    def spectrum(self, omega: np.ndarray, packet_size: float) -> np.ndarray:
        """Spectral density of the rate of all calls [packet^2 s / s^2] at frequencies [rad/s].

        The number of calls varies as that of Erlang's loss system, which is taken to forget at the
        pace of its first moments; the talkers among them come and go on their own.
        """
        calls, most = float(self.carried()), float(self.most)
        refused = float(self.offered()) - calls
        spread = calls - (refused * (most - calls) if refused > 0 else 0.0)
        memory = float(self.holding) * spread / calls if calls > 0 else 0.0
        active, turn = float(self.active), float(self.talk * (1 - self.active))
        turn = turn / (1 + turn / float(self.holding))
        coming = active**2 * spread * 2 * memory / (1 + (omega * memory) ** 2)
        talking = calls * active * (1 - active) * 2 * turn / (1 + (omega * turn) ** 2)
        return float(self.talker(packet_size)) ** 2 * (coming + talking)

    def left(self, capacity: Num, rate: Num) -> Num:
        """Capacity [packet/s] of the queue of the flows while the calls send `rate` [packet/s]."""
        if self.discipline == "fifo":
            return capacity
        return ops.maximum((1 - self.share) * capacity, capacity - rate)

    def mixed(self, rate: Num) -> Num:
        """Traffic of the calls in the queue of the flows, if they send `rate` [packet/s]."""
        return rate if self.discipline == "fifo" else 0.0 * rate

    def path(self, until: float, packet_size: float) -> Held:
        """One course of the rate of all calls, from its stationary state at 0 s.

        Parameters
        ----------
        until
            Its end [s].
        packet_size
            Bytes in a packet, in which the rates are given [packet/s].
        """
        rng = np.random.default_rng(self.seed)
        begin, end = self._calls(rng, until)
        times, steps, talking = self._talkers(rng, begin, np.minimum(end, until))
        within = times < until
        times, steps = times[within], steps[within]
        order = np.argsort(times, kind="stable")
        talkers = talking + np.concatenate([[0], np.cumsum(steps[order])])
        return Held(times[order], talkers * float(self.talker(packet_size)))

    def _calls(self, rng: "np.random.Generator", until: float) -> tuple[np.ndarray, np.ndarray]:
        """Begin and end of every call [s]; those under way at 0 begin there."""
        offered, holding, most = float(self.offered()), float(self.holding), float(self.most)
        present = present_calls(rng.uniform(), offered, most)
        coming = np.sort(rng.uniform(0.0, until, rng.poisson(offered / holding * until)))
        begin = np.concatenate([np.zeros(present), coming])
        end = begin + rng.exponential(holding, len(begin))
        admitted = _admitted(begin, end, most)
        return begin[admitted], end[admitted]

    def _talkers(
        self, rng: "np.random.Generator", begin: np.ndarray, end: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, int]:
        """When talkers come and go (+1 and -1) after 0 s, and how many there are at first."""
        active, spurt = float(self.active), float(self.talk)
        pause = float(self.silence())
        spurt = spurt if active < 1 else math.inf
        on = rng.uniform(size=len(begin)) < active
        at_first = int(np.count_nonzero(on & (begin == 0)))
        times, steps = [begin[on & (begin > 0)]], [np.ones(np.count_nonzero(on & (begin > 0)))]
        now = begin
        while len(now):
            leaves = (np.arange(_BLOCK) % 2 == 0) == on[:, None]
            durations = rng.exponential(np.where(leaves, spurt, pause))
            switch = now[:, None] + np.cumsum(durations, axis=1)
            inside = switch < end[:, None]
            hung_up = ~inside[:, -1] & (on ^ (np.count_nonzero(inside, axis=1) % 2 == 1))
            times += [switch[inside], end[hung_up]]
            steps += [np.where(leaves, -1.0, 1.0)[inside], -np.ones(np.count_nonzero(hung_up))]
            more = inside[:, -1]
            now, end, on = switch[more, -1], end[more], on[more]
        return np.concatenate(times), np.concatenate(steps), at_first


def present_calls(u: float, mean: float, most: float) -> int:
    """Calls at a random instant, from a number `u` uniform in [0, 1): Poisson, at most `most`."""
    if mean == 0:
        return 0
    last = int(min(most, mean + 40 * math.sqrt(mean) + 40))  # beyond lies no number that u reaches
    logs = [k * math.log(mean) - math.lgamma(k + 1) for k in range(last + 1)]
    top = max(logs)
    *below, total = itertools.accumulate(math.exp(log - top) for log in logs)
    return sum(chance <= u * total for chance in below)


def _admitted(begin: np.ndarray, end: np.ndarray, most: float) -> np.ndarray:
    """Mask of the calls that are admitted, in the order in which they begin."""
    admitted = np.ones(len(begin), bool)
    if math.isinf(most):
        return admitted
    ends: list[float] = []
    for k, (first, last) in enumerate(zip(begin, end, strict=True)):
        while ends and ends[0] <= first:
            heapq.heappop(ends)
        admitted[k] = len(ends) < most
        if admitted[k]:
            heapq.heappush(ends, last)
    return admitted
