"""Holds objects to the Kubernetes API, as Debian's python3-kubernetes has its models."""

import kubernetes.client

API_VERSIONS = {
    "ConfigMap": "v1",
    "Service": "v1",
    "Job": "batch/v1",
    "StatefulSet": "apps/v1",
    "Deployment": "apps/v1",
    "NetworkPolicy": "networking.k8s.io/v1",
}
PLAIN = {"str": str, "int": int, "bool": bool, "float": float}


def check_object(one):
    """Throws ValueError where an object is not what the API takes."""
    kind = one["kind"]
    if one["apiVersion"] != API_VERSIONS[kind]:
        raise ValueError(f"{kind}: apiVersion {one['apiVersion']}")
    check(one, "V1" + kind, kind)


def check(value, kind, where):
    if kind in PLAIN:
        if type(value) is not PLAIN[kind]:
            raise ValueError(f"{where}: {value!r} is no {kind}")
    elif kind.startswith("list["):
        if not isinstance(value, list):
            raise ValueError(f"{where}: no list")
        for index, item in enumerate(value):
            check(item, kind[5:-1], f"{where}[{index}]")
    elif kind.startswith("dict("):
        of_keys, of_values = kind[5:-1].split(", ")
        for key, item in value.items():
            check(key, of_keys, where)
            check(item, of_values, f"{where}.{key}")
    elif kind != "object":  # a number or a name, say
        check_fields(value, getattr(kubernetes.client, kind), where)


def check_fields(value, model, where):
    attributes = {name: attribute for attribute, name in model.attribute_map.items()}
    unknown = set(value) - set(attributes)
    if unknown:
        raise ValueError(f"{where}: no fields of {model.__name__}: {sorted(unknown)}")
    for name, item in value.items():
        check(item, model.openapi_types[attributes[name]], f"{where}.{name}")
    try:
        # Refuses what lacks a required field, or has a value that is not one of the possible ones.
        model(**{attributes[name]: item for name, item in value.items()})
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from error
