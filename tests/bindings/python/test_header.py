"""What the module has typed by hand of sotto.h: functions, callbacks and numbers are the header's."""

import ctypes
import re

import pytest

from conftest import ROOT
from sotto import _elastic_optimizer, _errors, _library, _site, _step_rule

HEADER = (ROOT / "bindings" / "c" / "sotto.h").read_text(encoding="utf-8")
CODE = re.sub(r"//[^\n]*", "", HEADER)

# What the module does without, and why.
UNUSED = {
    "sotto_status_name": "exceptions have classes",
    "sotto_optimizer_create": "it makes each from a setup",
    "sotto_site_create": "it makes each from a setup",
    "sotto_elastic_optimizer_create": "it makes each from a setup",
    "sotto_optimizer_interrupt": "it raises the setup's interrupt",
}

SCALARS = {
    "size_t": ctypes.c_size_t,
    "uint64_t": ctypes.c_uint64,
    "int": ctypes.c_int,
    "sotto_status": ctypes.c_int,
    "float": ctypes.c_float,
    "double": ctypes.c_double,
}
ADDRESS, PLACE = ctypes.c_void_p, ctypes.POINTER(ctypes.c_void_p)
# Types with one * and with two, by what they point to; a type of the header's is a handle.
POINTERS = {
    "const char": {"*": {ctypes.c_char_p}, "* const*": {ctypes.POINTER(ctypes.c_char_p)}},
    "char": {"**": {PLACE}},  # a text that the caller frees, whose address c_char_p would lose
    "const void": {"*": {ADDRESS, ctypes.c_char_p}},  # also an object of bytes
    "void": {"*": {ADDRESS}, "**": {PLACE}},
    "const float": {"*": {ADDRESS}},
    "float": {"*": {ADDRESS}},
}


def admissible(declared):
    """The types of ctypes that fit a type of C."""
    if declared == "void":
        return {None}
    base, star, more = declared.partition("*")
    base, stars = base.strip(), star + more
    if not stars:
        return {SCALARS.get(base, ADDRESS)}  # a function of the caller's is an address
    if base in POINTERS:
        return POINTERS[base][stars]
    if base.removeprefix("const ").startswith("sotto_"):
        return {"*": {ADDRESS}, "**": {PLACE}}[stars]
    return {ctypes.POINTER(SCALARS[base.removeprefix("const ")])}


def type_of(argument):
    """A declared argument without its name."""
    return re.sub(r"\w+$", "", " ".join(argument.split())).strip()


def arguments_of(text):
    return [] if text.strip() == "void" else [type_of(one) for one in text.split(",")]


FUNCTIONS = {
    name: (result.strip(), arguments_of(arguments))
    for result, name, arguments in re.findall(
        r"SOTTO_API\s+([\w\s]+?[\s*]+)(sotto_\w+)\(([^)]*)\);", CODE
    )
}


def test_the_header_is_read_whole():
    assert len(FUNCTIONS) == len(re.findall(r"^SOTTO_API ", CODE, re.MULTILINE)) > 80


def test_what_is_not_used_is_there_and_has_no_signature():
    assert UNUSED.keys() <= FUNCTIONS.keys()
    assert not UNUSED.keys() & _library._SIGNATURES.keys()


@pytest.mark.parametrize("name", sorted(FUNCTIONS.keys() - UNUSED.keys()))
def test_a_function_is_declared_as_in_the_header(name):
    result, arguments = FUNCTIONS[name]
    function = getattr(_library.library, name)
    assert function.argtypes is not None, "it has no signature in _library.py"
    assert function.restype in admissible(result)
    assert len(function.argtypes) == len(arguments)
    for place, (given, declared) in enumerate(zip(function.argtypes, arguments)):
        assert given in admissible(declared), f"argument {place + 1}, {declared}"


def test_each_signature_is_of_a_function_of_the_header():
    assert _library._SIGNATURES.keys() <= FUNCTIONS.keys()


@pytest.mark.parametrize(
    "name, entry",
    [("sotto_next_model", _step_rule._NEXT_MODEL), ("sotto_next_tensors", _step_rule._NEXT_TENSORS)],
)
def test_a_callback_is_declared_as_in_the_header(name, entry):
    arguments = re.search(rf"typedef const char\* \(\*{name}\)\(([^)]*)\);", CODE)[1]
    wanted = [admissible(declared) for declared in arguments_of(arguments)]
    assert len(entry._argtypes_) == len(wanted)
    assert all(given in fits for given, fits in zip(entry._argtypes_, wanted))
    assert entry._restype_ is ctypes.c_void_p  # an address, which c_char_p would lose


NUMBERS = {
    name: int(number) for name, number in re.findall(r"\b(SOTTO_[A-Z_]+) = (\d+)", CODE)
}


def test_flags_are_the_headers():
    assert _site._EXCHANGED == NUMBERS["SOTTO_SITE_EXCHANGED"]
    assert _site._DROPPED == NUMBERS["SOTTO_SITE_DROPPED"]
    assert _elastic_optimizer._LEFT_OUT == NUMBERS["SOTTO_ELASTIC_LEFT_OUT"]
    assert _elastic_optimizer._LOCAL_STEP == NUMBERS["SOTTO_ELASTIC_LOCAL_STEP"]


def test_each_status_has_its_exception():
    statuses = {
        name.removeprefix("SOTTO_").lower(): number
        for name, number in NUMBERS.items()
        if not name.startswith(("SOTTO_SITE_", "SOTTO_ELASTIC_"))
    }
    library = _library.library
    library.sotto_status_name.restype = ctypes.c_char_p
    for name, number in statuses.items():
        assert library.sotto_status_name(number).decode() == name
    assert library.sotto_status_name(max(statuses.values()) + 1) == b"unknown"
    named = {
        "io": "InputOutput",
        "budget": "BudgetSpent",
        "too_small": "Refused",
        "no_memory": "MemoryError",
    }
    del statuses["ok"]
    for name, number in statuses.items():
        error = _errors.error_of(number, "why")
        wanted = named.get(name, name.title().replace("_", ""))
        assert type(error).__name__ == wanted
        assert getattr(error, "status", number) == number
