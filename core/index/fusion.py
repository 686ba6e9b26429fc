"""Reciprocal rank fusion of result lists (Cormack, Clarke and Buettcher 2009), the same for every engine. Pure."""

from collections.abc import Iterable, Mapping, Sequence

RRF_K = 60
IDENTIFIER_WEIGHT = 2.0  # a part number that the question names outweighs either leg alone


def fuse(*legs: Sequence[str]) -> dict[str, float]:
    """Id -> fused score, best first. Each leg is its ids, best first."""
    scores: dict[str, float] = {}
    for leg in legs:
        for rank, key in enumerate(leg, 1):
            scores[key] = scores.get(key, 0.0) + 1.0 / (RRF_K + rank)
    return ranked(scores)


def boost(scores: Mapping[str, float], named: Iterable[str]) -> dict[str, float]:
    """Lifts the chunks that carry an identifier of the question; among themselves they keep the order of `scores`."""
    lifted = dict(scores)
    for rank, key in enumerate(sorted(set(named), key=lambda key: (-scores.get(key, 0.0), key)), 1):
        lifted[key] = lifted.get(key, 0.0) + IDENTIFIER_WEIGHT / (RRF_K + rank)
    return ranked(lifted)


def ranked(scores: Mapping[str, float]) -> dict[str, float]:
    """Best first; equals in the order of their ids, so that a search said twice answers the same."""
    return dict(sorted(scores.items(), key=lambda item: (-item[1], item[0])))
