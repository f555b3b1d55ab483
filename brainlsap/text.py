"""Small pieces of text: lists, counts, p-values, names of options in messages."""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar

OptionFormat = Callable[[str, object], str]

# How messages write an option while a command runs; None for Python's way.
_option_format: ContextVar[OptionFormat | None] = ContextVar(
    "option_format", default=None
)
# Most ids that a message writes behind `--exclude`.
_MAX_IDS_OF_OPTION = 10


def join_with_commas(items: Iterable[object], max_items: int = 20) -> str:
    """Return items separated by commas, cut after `max_items`.

    >>> join_with_commas(["Pons", "Vermis", "Putamen"], 2)
    'Pons, Vermis and 1 more'
    """
    item_texts = [str(item) for item in items]
    n_omitted = len(item_texts) - max_items
    omission_text = f" and {n_omitted} more" if n_omitted > 0 else ""
    return ", ".join(item_texts[:max_items]) + omission_text


def join_with_and(items: Iterable[object]) -> str:
    """Return items as in a sentence.

    >>> join_with_and(["Pons", "Vermis", "Putamen"])
    'Pons, Vermis and Putamen'
    """
    *leading_texts, last_text = [str(item) for item in items] or ["none"]
    if not leading_texts:
        return last_text
    return f"{', '.join(leading_texts)} and {last_text}"


def count_text(number: int, noun: str, verb: str = "") -> str:
    """Return a number with its noun, and with a verb that is in the plural.

    >>> count_text(1, "person"), count_text(1234, "person"), count_text(2, "fold")
    ('1 person', '1,234 people', '2 folds')
    >>> count_text(1, "scan", "were"), count_text(2, "scan", "were")
    ('1 scan was', '2 scans were')
    """
    plural_noun = {"person": "people"}.get(noun, f"{noun}s")
    counted_noun = f"{number:,} {noun if number == 1 else plural_noun}"
    return f"{counted_noun} {verb_form(number, verb)}" if verb else counted_noun


def verb_form(number: int, plural_verb: str) -> str:
    """Return the form of a verb that a number of things has.

    >>> verb_form(1, "have"), verb_form(1, "come"), verb_form(2, "come")
    ('has', 'comes', 'come')
    """
    if number != 1:
        return plural_verb
    irregular_forms = {"are": "is", "were": "was", "have": "has"}
    return irregular_forms.get(plural_verb, f"{plural_verb}s")


def named_counts_text(
    names_and_counts: Iterable[tuple[object, int]], max_items: int | None = None
) -> str:
    """Return names with their numbers, cut after `max_items`.

    >>> named_counts_text({"CN": 4, "AD": 3}.items())
    'CN (4), AD (3)'
    """
    count_texts = [f"{name} ({number})" for name, number in names_and_counts]
    return join_with_commas(
        count_texts, len(count_texts) if max_items is None else max_items
    )


def join_message(
    message: str, got: str = "", advice: str = "", verb: str = "got"
) -> str:
    """Return a message, the actual value, and the advice, as one text.

    >>> join_message("x must be positive", "-1", "Correct x.")
    'x must be positive; got -1. Correct x.'
    >>> join_message("x must be positive", "-1", verb="the first got")
    'x must be positive; the first got -1'
    """
    fact_text = f"{message}; {verb} {got}" if got else message
    return f"{fact_text.removesuffix('.')}. {advice}" if advice else fact_text


def p_text(p_value: float, smallest_p: float = 0.0) -> str:
    """Return a p-value for a table: three decimals, "< 0.001", or "n/a".

    The smallest p that permutations can give is an upper bound, also of a p below it
    (by chance, random permutations may contain the observed labels rarely).

    >>> p_text(0.0123), p_text(0.0004), p_text(math.nan)
    ('0.012', '< 0.001', 'n/a')
    >>> p_text(1 / 200, smallest_p=1 / 200)
    '≤ 0.005'
    >>> p_text(1 / 200, smallest_p=1 / 40)
    '≤ 0.025'
    """
    if not math.isfinite(p_value):
        return "n/a"
    is_smallest = p_value <= smallest_p * (1 + 1e-6)  # tolerates rounding in files
    if is_smallest:
        p_value = max(p_value, smallest_p)
    if p_value < 0.001:
        return "< 0.001"
    if is_smallest:
        return f"\N{LESS-THAN OR EQUAL TO} {p_text(p_value)}"
    # A fourth decimal, so that no p below 0.05 reads 0.050.
    return f"{p_value:.4f}" if 0.0495 <= p_value < 0.05 else f"{p_value:.3f}"


def p_phrase(p_value: float, smallest_p: float = 0.0) -> str:
    """Return a p-value for a sentence.

    >>> p_phrase(0.0123), p_phrase(0.0004)
    ('p = 0.012', 'p < 0.001')
    """
    formatted_p = p_text(p_value, smallest_p)
    is_bound = formatted_p.startswith(("<", "\N{LESS-THAN OR EQUAL TO}"))
    return f"p {formatted_p}" if is_bound else f"p = {formatted_p}"


def option_text(name: str, value: object = None) -> str:
    """Return an option, or its setting, as the reader of a message writes it.

    In Python that is the argument of a function; the command line replaces it by the
    flag of the command (:func:`use_option_format`).

    >>> option_text("scans"), option_text("scans", "all"), option_text("download", True)
    ('scans=', "scans='all'", 'download=True')
    """
    option_format = _option_format.get() or argument_text
    return option_format(name, value)


def option_name(name: str) -> str:
    """Return the name of a parameter as the subject of a message, without a value."""
    return option_text(name).removesuffix("=")


def argument_text(name: str, value: object = None) -> str:
    """Return the argument of a function, `name=` or with its value."""
    return f"{name}=" if value is None else f"{name}={value!r}"


def format_leave_out_advice() -> str:
    """Return the advice to leave out the scan that a message is about."""
    return (
        f"leave the scan out with {option_text('exclude')} or "
        f"{option_text('skip_faulty', True)}"
    )


def exclusion_option_text(scan_or_person_names: Sequence[str]) -> str:
    """Return the option that leaves out people or scans; many need a file."""
    if len(scan_or_person_names) > _MAX_IDS_OF_OPTION:
        return f"{option_text('exclude')} (a file with one ID in each line)"
    return option_text("exclude", ",".join(scan_or_person_names))


@contextmanager
def use_option_format(format_function: OptionFormat) -> Iterator[None]:
    """Write options in messages by a function of name and value (None for none)."""
    context_token = _option_format.set(format_function)
    try:
        yield
    finally:
        _option_format.reset(context_token)
