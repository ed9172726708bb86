from __future__ import annotations

import re
from pathlib import Path

import pytest

from persona_lab.core.errors import ConfigError
from persona_lab.core.experiment import ModelSettings, RunSettings, selected, stable_digest
from persona_lab.core.recipe import compose, dotted_keys, find_root, list_recipes, validate
from persona_lab.running.setup import configure
from tests.conftest import ROOT

RECIPES = sorted(list_recipes(ROOT))
MODELS = sorted(path.stem for path in (ROOT / "configs" / "model").glob("*.yaml"))


def problem(*arguments: str, recipe: str = "quickstart") -> str:
    with pytest.raises(ConfigError) as caught:
        configure(ROOT, [f"recipe={recipe}", *arguments])
    return str(caught.value)


@pytest.mark.parametrize("recipe", RECIPES)
def test_every_recipe_composes(recipe: str) -> None:
    assert configure(ROOT, [f"recipe={recipe}"]).config["experiment"]


@pytest.mark.parametrize("recipe", RECIPES)
def test_every_recipe_begins_with_its_command(recipe: str) -> None:
    first = (ROOT / "recipes" / f"{recipe}.yaml").read_text().splitlines()[0]
    assert first == f"# python -m persona_lab.run recipe={recipe}"
    assert list_recipes(ROOT)[recipe]


@pytest.mark.parametrize("model", MODELS)
def test_every_model_composes_as_target_and_judge(model: str) -> None:
    run = configure(ROOT, ["recipe=quickstart", f"model={model}", f"judge={model}"]).run
    assert run.model.name == model
    assert run.judge == run.model


@pytest.mark.parametrize(
    "path",
    sorted(p for p in (ROOT / "configs").glob("*/*.yaml") if p.parent.name != "model"),
    ids=str,
)
def test_every_other_config_composes(path: Path) -> None:
    group, name = path.parent.name, path.stem
    choice = f"[{name}]" if group in ("context", "method", "defence") else name
    named = {
        "form": rf"^# CPU form: form={name}\.$|^  - form: {name}$",
        "benchmark": f"^  - benchmark: {name}$",
    }.get(group, f"^  - {group}: ")
    texts = {r: (ROOT / "recipes" / f"{r}.yaml").read_text() for r in RECIPES}
    recipes = [r for r, text in texts.items() if re.search(named, text, re.MULTILINE)]
    assert recipes, "no recipe has a place for it"
    usual = f"realpref_{name}" if name == "blind_test" else "realpref_rq4"
    recipe = usual if usual in recipes else recipes[0]
    config = configure(ROOT, [f"recipe={recipe}", f"{group}={choice}"]).config
    assert config["experiment"]


@pytest.mark.parametrize("recipe", [r for r in RECIPES if not r.endswith("quickstart")])
def test_every_recipe_has_a_cpu_form(recipe: str) -> None:
    header = (ROOT / "recipes" / f"{recipe}.yaml").read_text()
    [form] = re.findall(r"^# CPU form: (form=\w+)\.$", header, re.MULTILINE)
    run = configure(ROOT, [f"recipe={recipe}", form]).run
    asked = {model.name for model in run.models().values()}
    assert asked == (set() if recipe.endswith("retrieval_only") else {"smollm2_135m"})


def test_a_role_that_the_recipe_has_not_cast_is_added() -> None:
    run = configure(ROOT, ["recipe=realpref_rq1", "second_judge=qwen3_8b"])
    assert run.run.second_judge is not None
    assert run.run.second_judge.name == "qwen3_8b"
    assert list(run.run.models()) == ["target", "judge", "second_judge"]
    changed = configure(
        ROOT, ["recipe=realpref_rq1", "second_judge=qwen3_8b", "second_judge.temperature=0.3"]
    )
    assert changed.run.second_judge is not None
    assert changed.run.second_judge.temperature == 0.3
    assert "no such choice" in problem("second_judge=qwen3_8c")
    without = configure(ROOT, ["recipe=benchpres_reasoning", "~thinking", "model=qwen3_8b"])
    assert without.run.thinking is None


@pytest.mark.parametrize("recipe", [r for r in RECIPES if r.startswith("realpref_")])
def test_no_window_ends_below_its_context(recipe: str) -> None:
    configured = configure(ROOT, [f"recipe={recipe}"])
    longest = max(
        c.get("interval_tokens", 0) + c.get("tail_tokens", 0)
        for c in configured.config["context"].values()
        if isinstance(c, dict)
    )
    # Filler, the user's own sessions (under 6,500), few-shot text (under 1,200), the answer.
    need = longest + 6_500 + 1_200 + configured.config["max_tokens"]["open_ended"]
    assert need < configured.run.model.max_model_len


def test_overrides_reach_their_place() -> None:
    overrides = [
        "judge.temperature=0.5",
        "limit=3",
        "method=[reminder]",
        "benchmark.users=['00002']",
    ]
    configured = configure(ROOT, ["recipe=quickstart", *overrides])
    assert configured.run.judge is not None
    assert (configured.run.judge.temperature, configured.run.limit) == (0.5, 3)
    assert configured.config["method"] == {
        "zero_shot": None, "reminder": {}, "few_shot_cot": None, "rag": None, "mem0": None,
    }  # fmt: skip
    assert configured.config["benchmark"]["users"] == ["00002"]


@pytest.mark.parametrize("sign", ["", "+", "++"])
def test_a_misspelt_key_is_refused_whatever_its_prefix(sign: str) -> None:
    assert "did you mean model.temperature?" in problem(f"{sign}model.temprature=0.7")


def test_a_key_that_leads_nowhere_is_refused() -> None:
    assert "this recipe has no x" in problem("+x.typo=1")
    assert "no such key" in problem("+typo=1")


def test_a_method_that_was_not_chosen_cannot_be_set() -> None:
    message = problem("method=[zero_shot]", "method.reminder.k=3")
    assert "this recipe has no method.reminder" in message


def test_hydras_own_settings_are_refused() -> None:
    assert "Hydra's own settings" in problem("hydra.output_subdir=zz")
    assert "Hydra's own settings" in problem("hydra.ouput_subdir=zz")


@pytest.mark.parametrize("text", ["off", "'false'", "no", "0", "1"])
def test_only_real_booleans_are_booleans(text: str) -> None:
    message = problem(f"model.reasoning={text}")
    assert "is not a boolean; write model.reasoning=true or model.reasoning=false" in message


def test_booleans_of_both_spellings_pass() -> None:
    for text, value in (("true", True), ("False", False), ("null", None)):
        run = configure(ROOT, ["recipe=quickstart", f"model.reasoning={text}"]).run
        assert run.model.reasoning is value


def test_wrong_choices_name_the_right_ones() -> None:
    assert "did you mean smollm2_135m?" in problem("model=smollm2_135")
    assert "did you mean smollm2_135m?" in problem("judge=smolm2_135m")
    assert "did you mean reminder?" in problem("method=[zero_shot,remind]")
    assert "did you mean quickstart?" in problem(recipe="quickstrat")
    message = problem("task=open")
    assert "task.0" in message
    assert "'multiple_choice', 'true_or_false' or 'open_ended'" in message


def test_a_sweep_is_not_a_run() -> None:
    assert "in brackets" in problem("seed=1,2")


@pytest.mark.parametrize(
    "override", ["seed='3'", "seed=3.5", "limit=0", "limit=many", "max_unparsed=5", "shard=0/4"]
)
def test_wrong_types_and_ranges_name_their_key(override: str) -> None:
    assert problem(override).startswith(override.split("=", maxsplit=1)[0] + ":")


def test_all_problems_are_reported_together() -> None:
    message = problem("model.top_p=7", "seed=x")
    assert "model.top_p" in message
    assert "seed" in message


def test_what_is_no_override_is_refused() -> None:
    assert "is not key=value" in problem("just-words")
    with pytest.raises(ConfigError, match=r"give one recipe=NAME\. There are: .*quickstart"):
        configure(ROOT, [])


def recipe_folder(tmp_path: Path, text: str) -> Path:
    for name in ("recipes", "configs", "data"):
        (tmp_path / name).mkdir()
    (tmp_path / "recipes" / "r.yaml").write_text(text)
    return tmp_path


def test_yaml_tags_do_not_run_code(tmp_path: Path) -> None:
    marker = tmp_path / "marker"
    root = recipe_folder(tmp_path, f'x: !!python/object/apply:os.system ["touch {marker}"]\n')
    with pytest.raises(ConfigError):
        compose(root, "r")
    assert not marker.exists()


def test_repeated_yaml_keys_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="duplicate key"):
        compose(recipe_folder(tmp_path, "a: 1\na: 2\n"), "r")


def test_yaml_numbers_are_numbers(tmp_path: Path) -> None:
    assert compose(recipe_folder(tmp_path, "rate: 1e-5\n"), "r") == {"rate": 1e-5}


def test_a_folder_with_odd_characters_can_be_the_root(tmp_path: Path) -> None:
    root = tmp_path / "it's (a) root, 1=2"
    root.mkdir()
    recipe_folder(root, "defaults:\n  - group: one\n")
    (root / "configs" / "group").mkdir()
    (root / "configs" / "group" / "one.yaml").write_text("a: 1\n")
    assert compose(root, "r") == {"group": {"a": 1}}


def test_root_is_given_else_working_folder_else_checkout(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert find_root() == ROOT
    with pytest.raises(ConfigError, match="has no folder recipes, configs, data/"):
        find_root(tmp_path)
    recipe_folder(tmp_path, "")
    assert find_root() == tmp_path


def test_a_wrong_value_is_told_with_its_key() -> None:
    with pytest.raises(ConfigError, match=r"max_model_len: .*16.*, not 3"):
        validate({"name": "n", "path": "p", "max_model_len": 3}, ModelSettings)


def test_dotted_keys_go_into_optional_parts() -> None:
    keys = set(dotted_keys(RunSettings))
    assert {"model.temperature", "judge.path", "seed"} <= keys


class Case:
    def __init__(self, name: str) -> None:
        self.id = name


def test_shards_are_a_partition_and_stable() -> None:
    cases = [Case(f"q{i}") for i in range(50)]
    parts = [[c.id for c in selected(cases, None, f"{i}/4")] for i in range(1, 5)]
    assert sorted(name for part in parts for name in part) == sorted(c.id for c in cases)
    assert all(parts)
    # `printf q1 | b2sum -l 64` of coreutils prints e7837aa50ee28068.
    assert stable_digest("q1") == 0xE7837AA50EE28068


def test_a_shard_beyond_the_last_is_refused() -> None:
    with pytest.raises(ConfigError, match="only parts 1 to 4"):
        selected([Case("a")], None, "5/4")


def test_two_cases_with_one_id_are_refused() -> None:
    with pytest.raises(ConfigError, match="one id"):
        selected([Case("a"), Case("a")], None, None)
