"""What a mistake is, and what its error says: the class and the facts of the message."""

import re
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

Cases = dict[str, Callable[[Any], Any]]
"""By name: what makes the mistake with a library, `torch` or `xtensor`."""

# A number, or a name that is quoted, called, has an underscore or a dot, or is a class's.
FACT = re.compile(
    r"(?<![\w.])-?\d+(?:\.\d+)?(?!\w)"  # 3, -1, 0.5
    r"|['\"`]([^'\"`\s]+)['\"`]"  # 'weight'
    r"|\b([A-Za-z_][\w.]*)(?=\(\))"  # add()
    r"|\b([a-z]+_[a-z_]+\w*)\b"  # requires_grad
    r"|\b([A-Z][a-z]+[A-Z]\w*|Float|Double|Long|Int|Half|Bool|Tensor)\b"  # FloatTensor
)


class Said(NamedTuple):
    """An error's class and message; the class is None where there was no error."""

    kind: type[BaseException] | None
    text: str


def said(case: Callable[[Any], Any], lib: Any) -> Said:
    """What a library says to a mistake; warnings are not what is asked for."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            case(lib)
        except Exception as error:
            return Said(type(error), str(error))
    return Said(None, "")


def facts(text: str) -> set[str]:
    """The numbers and names in a message, however it is worded; the library's own name is left out."""
    text = re.sub(r"\b(?:torch|xtensor)\.|'(?:torch|xtensor)'", "", text)
    # The signatures that would have fitted are of each library's own making.
    text = text.partition(", but expected")[0] if "invalid combination of arguments" in text else text
    # The class that a C method belongs to, and how many arguments "no arguments" are.
    text = re.sub(r"\b(?:TensorBase|_VariableFunctionsClass)\.", "", text)
    return {next(filter(None, m.groups()), m[0]) for m in FACT.finditer(text)}


class Verdict(NamedTuple):
    """How one library's words stand beside the other's: `missing` are the facts that they lack."""

    name: str
    theirs: Said
    ours: Said

    @property
    def same_class(self) -> bool:
        """Whether the classes have one name: both libraries derive a few of their own from built-in ones."""
        kinds = self.theirs.kind, self.ours.kind
        return None not in kinds and kinds[0].__name__.lstrip("_") == kinds[1].__name__  # pyright: ignore[reportOptionalMemberAccess]

    @property
    def missing(self) -> set[str]:
        return facts(self.theirs.text) - facts(self.ours.text)

    @property
    def same_facts(self) -> bool:
        return self.same_class and not self.missing
