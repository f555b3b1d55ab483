"""Small pieces of text: lists, counts."""

from collections.abc import Iterable


def listed(items: Iterable[object], max_items: int = 20) -> str:
    """Return items separated by commas, cut after `max_items`.

    >>> listed(["Pons", "Vermis", "Putamen"], 2)
    'Pons, Vermis and 1 more'
    """
    item_texts = [str(item) for item in items]
    n_omitted = len(item_texts) - max_items
    ending = f" and {n_omitted} more" if n_omitted > 0 else ""
    return ", ".join(item_texts[:max_items]) + ending


def with_and(items: Iterable[object]) -> str:
    """Return items as in a sentence.

    >>> with_and(["Pons", "Vermis", "Putamen"])
    'Pons, Vermis and Putamen'
    """
    *leading_texts, last_text = [str(item) for item in items] or ["none"]
    if not leading_texts:
        return last_text
    return f"{', '.join(leading_texts)} and {last_text}"


def count(number: int, noun: str) -> str:
    """Return a number with its noun.

    >>> count(1, "person"), count(1234, "person"), count(2, "fold")
    ('1 person', '1,234 people', '2 folds')
    """
    plural_noun = {"person": "people"}.get(noun, f"{noun}s")
    return f"{number:,} {noun if number == 1 else plural_noun}"
