"""Small pieces of text: lists, counts."""

from collections.abc import Iterable


def listed(items: Iterable[object], max_items: int = 20) -> str:
    """Return items separated by commas, cut after `max_items`.

    >>> listed(["Pons", "Vermis", "Putamen"], 2)
    'Pons, Vermis and 1 more'
    """
    texts = [str(item) for item in items]
    n_omitted = len(texts) - max_items
    ending = f" and {n_omitted} more" if n_omitted > 0 else ""
    return ", ".join(texts[:max_items]) + ending


def with_and(items: Iterable[object]) -> str:
    """Return items as in a sentence.

    >>> with_and(["Pons", "Vermis", "Putamen"])
    'Pons, Vermis and Putamen'
    """
    *first_texts, final_text = [str(item) for item in items] or ["none"]
    if not first_texts:
        return final_text
    return f"{', '.join(first_texts)} and {final_text}"


def count(number: int, noun: str) -> str:
    """Return a number with its noun.

    >>> count(1, "person"), count(1234, "person"), count(2, "fold")
    ('1 person', '1,234 people', '2 folds')
    """
    plural = {"person": "people"}.get(noun, f"{noun}s")
    return f"{number:,} {noun if number == 1 else plural}"
