"""Recipes: from `recipe=NAME key=value ...` to strictly typed settings.

Hydra composes `recipes/NAME.yaml` (the primary config) with the groups in `configs/`; pydantic
models say which keys exist and of what type. Unknown keys are errors whatever their prefix, and
only real booleans are booleans.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar, get_args

from hydra import compose as hydra_compose
from hydra import initialize_config_dir
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override, OverrideType
from hydra.errors import HydraException
from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException
from pydantic import BaseModel, ConfigDict, ValidationError
from yaml import YAMLError

from persona_lab.core.errors import ConfigError

S = TypeVar("S", bound=BaseModel)
ROOT_FOLDERS = ("recipes", "configs", "data")
ROLE_KEYS = ("writer", "memory", "model", "thinking", "judge", "second_judge")
"""Keys that hold a model; `model` is the role `target`. `judge=NAME` picks from configs/model."""


def one_or_more(value: Any) -> Any:
    """A single name as a list of one; for settings that take several."""
    return [value] if isinstance(value, str) else value


class Strict(BaseModel):
    """Base of all settings: no unknown keys, no coercion, immutable."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


def find_root(given: Path | None = None) -> Path:
    """The folder with recipes/, configs/ and data/: `given`, else the working folder, else the
    checkout, else the copies that the installed package carries.

    Raises:
        ConfigError: `given` lacks one of the three.
    """
    package = Path(__file__).resolve().parents[1]
    if given is not None:
        missing = [name for name in ROOT_FOLDERS if not (given / name).is_dir()]
        if missing:
            raise ConfigError(f"--root {given}: has no folder {', '.join(missing)}/")
        return given.resolve()
    for root in (Path.cwd(), package.parent, package / "_root"):
        if all((root / name).is_dir() for name in ROOT_FOLDERS):
            return root
    raise ConfigError("found no folder with recipes/, configs/ and data/: give one with --root")


def list_recipes(root: Path) -> dict[str, str]:
    """Recipe name -> the first line of its header that is not the command."""
    found = {}
    for path in sorted((root / "recipes").glob("*.yaml")):
        header = [
            line.lstrip("# ").rstrip()
            for line in path.read_text(encoding="utf-8").splitlines()
            if line.startswith("#")
        ]
        found[path.stem] = next((h for h in header if h and not h.startswith("python")), "")
    return found


def compose(root: Path, recipe: str, overrides: Sequence[str] = ()) -> dict[str, Any]:
    """The plain configuration of a recipe under overrides in Hydra's grammar.

    Args:
        root: folder with recipes/ and configs/.
        recipe: name of a file in recipes/, without `.yaml`.
        overrides: such as `model=qwen3_8b`, `method=[zero_shot,reminder]`, `judge.top_p=0.9`.

    Raises:
        ConfigError: naming the wrong recipe, choice or key and the nearest right one.
    """
    _require_choice("recipe", recipe, list_recipes(root))
    groups: list[Override] = []
    values: list[Override] = []
    for override in _parse(overrides):
        is_group = _is_role(override) or (root / "configs" / override.key_or_group).is_dir()
        (groups if is_group else values).append(override)
    cast = set(_hydra(root, recipe, [])) if any(map(_is_role, groups)) else set()
    chosen = [_group_choice(root, override, cast) for override in groups]
    base = _hydra(root, recipe, chosen)
    for override in values:
        _require_parent(override.key_or_group, base)
    config = _hydra(root, recipe, [*chosen, *(_forced(o) for o in values)])
    dropped = {o.key_or_group for o in groups if _is_role(o) and o.type is OverrideType.DEL}
    return {key: value for key, value in config.items() if key not in dropped}


def validate(config: dict[str, Any], schema: type[S], keys: Iterable[str] = ()) -> S:
    """Strictly typed settings.

    Args:
        config: plain configuration.
        schema: the settings' type.
        keys: further dotted keys that exist elsewhere, for suggestions.

    Raises:
        ConfigError: every problem with its key, one a line.
    """
    try:
        return schema.model_validate(config)
    except ValidationError as error:
        known = [*dotted_keys(schema), *keys]
        lines = [_explain(problem, known) for problem in error.errors()]
        raise ConfigError("\n".join(lines)) from None


def dotted_keys(schema: type[BaseModel], prefix: str = "") -> Iterator[str]:
    """Every key of a settings type, as it is written on the command line."""
    for name, info in schema.model_fields.items():
        yield prefix + name
        for part in (info.annotation, *get_args(info.annotation)):
            if isinstance(part, type) and issubclass(part, BaseModel):
                yield from dotted_keys(part, f"{prefix}{name}.")


def _parse(overrides: Sequence[str]) -> list[Override]:
    parser = OverridesParser.create()
    parsed = []
    for text in overrides:
        try:
            override = parser.parse_override(text)
        except HydraException as error:
            raise ConfigError(f"{text!r} is not key=value in Hydra's grammar: {error}") from None
        if override.key_or_group.split(".")[0] == "hydra":
            raise ConfigError(f"{text!r}: Hydra's own settings cannot be changed here")
        if override.is_sweep_override():
            raise ConfigError(
                f"{text!r}: give one value; several choices of a group are compared inside one "
                f"run when they stand in brackets: '{override.key_or_group}=[a,b]'"
            )
        parsed.append(override)
    return parsed


def _is_role(override: Override) -> bool:
    """Whether it says who plays a role."""
    return override.key_or_group in ROLE_KEYS


def _group_choice(root: Path, override: Override, cast: Collection[str]) -> str:
    """A choice of a group as Hydra takes it; a role that is not in `cast` yet joins the recipe."""
    key = override.key_or_group
    group = "model" if key in ROLE_KEYS else key
    choices = [path.stem for path in sorted((root / "configs" / group).glob("*.yaml"))]
    target = key if key == group else f"{group}@{key}"
    if override.type is OverrideType.DEL:
        return f"~{target}"
    picked = override.value()
    for name in picked if isinstance(picked, list) else [picked]:
        _require_choice(key, str(name), choices)
    named = f"[{','.join(map(str, picked))}]" if isinstance(picked, list) else picked
    joins = "+" if _is_role(override) and key not in cast else ""
    return f"{joins}{target}={named}"


def _require_choice(key: str, name: str, choices: Iterable[str]) -> None:
    choices = list(choices)
    if name not in choices:
        near = difflib.get_close_matches(name, choices, n=1)
        hint = f"; did you mean {near[0]}?" if near else "."
        raise ConfigError(f"{key}={name}: no such choice{hint} There are: {', '.join(choices)}")


def _require_parent(key: str, config: dict[str, Any]) -> None:
    """A dotted key must lead into something that the recipe has, so that no typo creates it."""
    node: Any = config
    parts = key.split(".")
    for depth, part in enumerate(parts[:-1]):
        if not isinstance(node, dict) or part not in node:
            here = list(node) if isinstance(node, dict) else []
            place = ".".join(parts[: depth + 1])
            near = difflib.get_close_matches(part, here, n=1)
            hint = f"did you mean {near[0]}? " if near else ""
            raise ConfigError(f"{key}: this recipe has no {place}; {hint}It has: {', '.join(here)}")
        node = node[part]


def _forced(override: Override) -> str:
    """The override so that Hydra lets it through; the schema decides whether the key exists."""
    line = override.input_line or ""
    if override.type is OverrideType.DEL:
        return line
    return "++" + line.lstrip("+")


def _hydra(root: Path, recipe: str, overrides: list[str]) -> dict[str, Any]:
    root = root.resolve()
    configs = str(root / "configs").replace("'", r"\'")
    try:
        with initialize_config_dir(version_base="1.3", config_dir=str(root / "recipes")):
            config = hydra_compose(
                recipe, overrides=[f"hydra.searchpath=['file://{configs}']", *overrides]
            )
        plain = OmegaConf.to_container(config, resolve=True, throw_on_missing=True)
    except (HydraException, OmegaConfBaseException, YAMLError, ValueError) as error:
        first = str(error).split("\nTo append to your")[0].strip()
        raise ConfigError(f"recipe {recipe}: {first}") from None
    return {str(key): value for key, value in plain.items()} if isinstance(plain, dict) else {}


def _explain(problem: Any, known: list[str]) -> str:
    key = ".".join(map(str, problem["loc"]))
    value = problem["input"]
    if problem["type"] == "extra_forbidden":
        last = key.rsplit(".", 1)
        inside = [k for k in known if k.rsplit(".", 1)[:-1] == last[:-1]]
        near = difflib.get_close_matches(key, inside, n=1, cutoff=0.4) or difflib.get_close_matches(
            key, known, n=1, cutoff=0.0
        )
        return f"{key}: no such key; did you mean {near[0]}?" if near else f"{key}: no such key"
    if problem["type"] == "bool_type":
        return f"{key}: {value!r} is not a boolean; write {key}=true or {key}=false"
    if problem["type"] == "missing":
        return f"{key}: is missing"
    return f"{key}: {problem['msg']}, not {value!r}"
