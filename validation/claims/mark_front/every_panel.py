"""Section 6: all simulations together."""

from ...lab.judging import Judgement, judge
from ...lab.measures import flow_unfairness, link_efficiency
from .common import better, drops, largest, sides

_ALL = {
    "3": ("ten_leo", largest, False),
    "4a": ("ten_geo", largest, False),
    "4b": ("ten_geo_apart", largest, False),
    "5a": ("two_leo", link_efficiency, True),
    "5b": ("two_geo_apart", link_efficiency, True),
    "6a": ("drops_ten_leo", drops, False),
    "6b": ("drops_two_leo", drops, False),
    "7a": ("drops_ten_geo", drops, False),
    "7b": ("drops_two_geo", drops, False),
    "7c": ("drops_ten_geo_apart", drops, False),
    "8a": ("ten_leo", flow_unfairness, False),
    "8b": ("ten_geo_apart", flow_unfairness, False),
}


@judge(
    "MF-27", needs=sides(*dict.fromkeys(name for name, _, _ in _ALL.values())),
    readings=("finite", "total", "double"),
)  # fmt: skip
def everywhere(lab, claim):
    """The order of every panel, by the rule for orders; the claim needs all twelve, where one
    reading serves them all.
    """
    found = {
        panel: better(lab, name, value, panel, more=more).verdict
        for panel, (name, value, more) in _ALL.items()
    }
    count = sum(v == "reproduced" for v in found.values())
    rest = ", ".join(f"{panel} ({v})" for panel, v in found.items() if v != "reproduced")
    why = f"the order holds in {count} of {len(found)} panels; not in {rest or 'none'}"
    if count == len(found):
        return Judgement("reproduced", why, value=count)
    wrong = "contradicted" if "contradicted" in found.values() else "not_reproduced"
    return Judgement(wrong, why, value=count)
