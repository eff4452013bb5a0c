"""libsotto.so and its functions."""

from __future__ import annotations

import ctypes
import json
import os
import pathlib
from typing import Any

from ._errors import Refused, error_of

_NAME = "libsotto.so.0"

c_float_p = ctypes.c_void_p  # addresses of arrays are numbers
_handle = ctypes.c_void_p
_handle_p = ctypes.POINTER(ctypes.c_void_p)
_size_p = ctypes.POINTER(ctypes.c_size_t)
_uint64_p = ctypes.POINTER(ctypes.c_uint64)
_int_p = ctypes.POINTER(ctypes.c_int)
_texts = ctypes.POINTER(ctypes.c_char_p)
# Texts that are to be freed; c_char_p would lose their address.
_text_p = ctypes.POINTER(ctypes.c_void_p)

# Arguments of the functions that return a status. A test compares them with sotto.h.
_SIGNATURES = {
    "sotto_list": [ctypes.c_char_p, _text_p],
    "sotto_layout_create": [_handle_p],
    "sotto_layout_add": [_handle, ctypes.c_char_p, ctypes.c_size_t, _size_p],
    "sotto_store_create": [_handle_p],
    "sotto_interrupt_create": [_handle_p],
    "sotto_interrupt_raise": [_handle],
    # The function's type is that of the object that is given (_step_rule.py).
    "sotto_step_rule_create": [ctypes.c_char_p, ctypes.c_void_p, ctypes.c_void_p, _handle_p],
    "sotto_step_rule_create_by_tensor": [
        ctypes.c_char_p,
        ctypes.c_void_p,
        ctypes.c_void_p,
        _handle_p,
    ],
    "sotto_step_rule_set_state": [_handle, ctypes.c_void_p, ctypes.c_void_p],
    "sotto_step_rule_set_settings": [_handle, ctypes.c_void_p],
    "sotto_optimizer_setup_create": [_handle_p],
    "sotto_optimizer_setup_set_layout": [_handle, _handle],
    "sotto_optimizer_setup_set_store": [_handle, _handle],
    "sotto_optimizer_setup_set_interrupt": [_handle, _handle],
    "sotto_optimizer_setup_set_step_rule": [_handle, _handle],
    "sotto_optimizer_create_from": [_handle, _texts, c_float_p, ctypes.c_size_t, _handle_p],
    "sotto_optimizer_announce_settings": [_handle, ctypes.c_double, ctypes.c_char_p],
    "sotto_optimizer_carry_along": [_handle, c_float_p, ctypes.c_size_t],
    "sotto_optimizer_take_from_node_0": [_handle, c_float_p, ctypes.c_size_t],
    "sotto_optimizer_connect": [_handle],
    "sotto_optimizer_begin_step": [_handle],
    "sotto_optimizer_step": [_handle, c_float_p, ctypes.c_size_t],
    "sotto_optimizer_takes_parts": [_handle, _int_p],
    "sotto_optimizer_gradient_part": [_handle, ctypes.c_size_t, c_float_p, ctypes.c_size_t],
    "sotto_optimizer_step_by_parts": [_handle],
    "sotto_optimizer_set_learning_rate": [_handle, ctypes.c_double],
    "sotto_optimizer_ask_to_end": [_handle],
    "sotto_optimizer_evaluated": [_handle, ctypes.c_double, ctypes.c_double],
    "sotto_optimizer_mean": [
        _handle,
        c_float_p,
        ctypes.c_size_t,
        ctypes.POINTER(ctypes.c_double),
    ],
    "sotto_optimizer_give_up": [_handle, ctypes.c_char_p],
    "sotto_optimizer_drain": [_handle],
    "sotto_optimizer_finish": [_handle],
    "sotto_optimizer_finish_with_mean": [
        _handle,
        c_float_p,
        ctypes.c_size_t,
        ctypes.POINTER(ctypes.c_double),
    ],
    "sotto_optimizer_round": [_handle, _uint64_p],
    "sotto_optimizer_warning_count": [_handle, _size_p],
    "sotto_optimizer_report": [_handle, _text_p],
    "sotto_optimizer_save": [_handle, _handle_p, _size_p],
    "sotto_optimizer_load": [_handle, ctypes.c_char_p, ctypes.c_size_t],
    "sotto_optimizer_save_file": [_handle, ctypes.c_char_p],
    "sotto_optimizer_load_file": [_handle, ctypes.c_char_p],
    "sotto_site_create_from": [_handle, _texts, c_float_p, ctypes.c_size_t, _handle_p],
    "sotto_site_connect": [_handle],
    "sotto_site_step": [_handle, c_float_p, ctypes.c_size_t, ctypes.c_double, _int_p],
    "sotto_site_relay": [_handle, _int_p],
    "sotto_site_leave": [_handle],
    "sotto_site_evaluated": [_handle, ctypes.c_double, ctypes.c_double],
    "sotto_site_finish": [_handle],
    "sotto_site_stop": [_handle],
    "sotto_site_over": [_handle, _int_p],
    "sotto_site_round": [_handle, _uint64_p],
    "sotto_site_next_step": [_handle, _uint64_p],
    "sotto_site_report": [_handle, _text_p],
    "sotto_site_events": [_handle, _text_p],
    "sotto_elastic_optimizer_create_from": [
        _handle,
        _texts,
        c_float_p,
        ctypes.c_size_t,
        _handle_p,
    ],
    "sotto_elastic_optimizer_connect": [_handle],
    "sotto_elastic_optimizer_step": [
        _handle,
        c_float_p,
        ctypes.c_size_t,
        ctypes.c_double,
        _uint64_p,
        _int_p,
    ],
    "sotto_elastic_optimizer_takes_parts": [_handle, _int_p],
    "sotto_elastic_optimizer_gradient_part": [
        _handle,
        ctypes.c_size_t,
        c_float_p,
        ctypes.c_size_t,
    ],
    "sotto_elastic_optimizer_step_by_parts": [_handle, ctypes.c_double, _uint64_p, _int_p],
    "sotto_elastic_optimizer_wait": [_handle, _uint64_p, _int_p],
    "sotto_elastic_optimizer_cancel": [_handle],
    "sotto_elastic_optimizer_evaluated": [_handle, ctypes.c_double, ctypes.c_double],
    "sotto_elastic_optimizer_finish": [_handle],
    "sotto_elastic_optimizer_stop": [_handle],
    "sotto_elastic_optimizer_over": [_handle, _int_p],
    "sotto_elastic_optimizer_round": [_handle, _uint64_p],
    "sotto_elastic_optimizer_next_step": [_handle, _uint64_p],
    "sotto_elastic_optimizer_report": [_handle, _text_p],
    "sotto_elastic_optimizer_events": [_handle, _text_p],
    "sotto_compressor_create": [ctypes.c_char_p, _handle, _handle_p],
    "sotto_compressor_max_bytes": [_handle, ctypes.c_size_t, _size_p],
    "sotto_compressor_encode": [
        _handle,
        c_float_p,
        ctypes.c_size_t,
        ctypes.c_uint64,
        ctypes.c_uint64,
        ctypes.c_void_p,
        ctypes.c_size_t,
        _size_p,
    ],
    "sotto_compressor_decode_add": [
        _handle,
        ctypes.c_char_p,
        ctypes.c_size_t,
        ctypes.c_float,
        c_float_p,
        ctypes.c_size_t,
    ],
    "sotto_compressor_describe": [_handle, ctypes.c_size_t, _text_p],
    "sotto_topology_create": [_texts, _handle_p],
    "sotto_topology_size": [_handle, _size_p, _uint64_p],
    "sotto_topology_weights": [_handle, ctypes.c_uint64, c_float_p, ctypes.c_size_t],
    "sotto_simulate": [_texts, _handle, _text_p],
    "sotto_plan": [_texts, _handle, _text_p],
}


def _candidates():
    """Where the library may be: as told, beside this file, as installed, as the system says."""
    told = os.environ.get("SOTTO_LIBRARY")
    if told:
        return [told]
    here = pathlib.Path(__file__).resolve().parent
    places = [here / _NAME]
    try:
        from ._place import LIBRARY  # type: ignore[import] # written by the installation

        places.append((here / LIBRARY).resolve())
    except ImportError:
        pass
    return [str(place) for place in places if place.exists()] + [_NAME]


def _load():
    troubles = []
    for path in _candidates():
        try:
            return ctypes.CDLL(path)
        except OSError as trouble:
            troubles.append(str(trouble))
    raise ImportError(
        f"{_NAME} cannot be loaded ({'; '.join(troubles)}): install libsotto, or name the file in "
        "the variable SOTTO_LIBRARY"
    )


def _declare(name, result, arguments):
    function = getattr(library, name)
    function.restype = result
    function.argtypes = arguments


library = _load()
for _name, _arguments in _SIGNATURES.items():
    _declare(_name, ctypes.c_int, _arguments)
for _kind in (
    "layout",
    "store",
    "interrupt",
    "step_rule",
    "optimizer_setup",
    "optimizer",
    "site",
    "elastic_optimizer",
    "compressor",
    "topology",
):
    _declare(f"sotto_{_kind}_destroy", None, [_handle])
_declare("sotto_free", None, [ctypes.c_void_p])
_declare("sotto_version", ctypes.c_char_p, [])
_declare("sotto_last_error", ctypes.c_char_p, [])


def outcome(name, *arguments):
    """Calls sotto_NAME; the exception of what its status says, or None."""
    status = getattr(library, "sotto_" + name)(*arguments)
    if status == 0:
        return None
    return error_of(status, library.sotto_last_error().decode("utf-8", "replace"))


def call(name, *arguments):
    """Calls sotto_NAME; raises what its status says."""
    error = outcome(name, *arguments)
    if error is not None:
        raise error


def call_for_json(name, *arguments):
    """Calls a function whose last argument takes a JSON text."""
    text = ctypes.c_void_p()
    call(name, *arguments, ctypes.byref(text))
    try:
        return json.loads(ctypes.string_at(text).decode("utf-8", "replace"))
    finally:
        library.sotto_free(text)


def encoded(what, text):
    """`text`, or a path, as the library takes it: UTF-8, which ends at the first zero byte."""
    given = os.fspath(text)
    if isinstance(given, str):
        given = given.encode("utf-8", "surrogateescape")
    if b"\0" in given:
        raise Refused(f"{what}: {text!r} is refused: it holds a zero byte")
    return given


class TextList(tuple):
    """Texts for a setting that may be given again and again."""


def setting_texts(settings):
    """Keyword arguments as the library takes settings; None leaves one out, and each text of a list is
    given by itself."""
    given = dict(settings)
    job = given.pop("job", None) or {}
    given.update(("job." + name, str(value)) for name, value in job.items())
    words = []
    for name, value in given.items():
        if value is None:
            continue
        if isinstance(value, bool):
            value = "true" if value else "false"
        for each in value if isinstance(value, TextList) else [value]:
            words += [encoded("the name of a setting", name), encoded(name, str(each))]
    array = (ctypes.c_char_p * (len(words) + 1))()
    for place, word in enumerate(words):
        array[place] = word
    return array


def version() -> str:
    """The library's version, "0.1.0"."""
    return library.sotto_version().decode()


def choices(kind: str) -> list[dict[str, Any]]:
    """What there is to choose from, a list of dictionaries: `kind` is "algorithms", "rules",
    "compressors", "topologies", "transports", "settings", "site-settings" or "elastic-settings"."""
    return call_for_json("list", encoded("kind", kind))
