"""P-1: one broken plug-in stops nothing but itself."""

import subprocess
import sys
from importlib.metadata import EntryPoint

import pytest

from posattn import registry as registry_module
from posattn.errors import DuplicateName, PluginError, UnknownName
from posattn.registry import Registry

GROUP = "posattn.mechanisms"
GOOD = '''
from typing import Literal
from posattn.mechanisms import Mechanism, MechanismConfig

class ShoutConfig(MechanismConfig):
    name: Literal["shout"] = "shout"
    loudness: float = 1.0

class Shout(Mechanism):
    """Adds nothing, loudly."""
    Config = ShoutConfig
'''


class Thing:
    """An entry."""


class Other:
    """Another entry."""


def registry_with(monkeypatch, *points):
    """Return a registry that finds these (name, loader) entry points."""

    class Fake(EntryPoint):
        def __init__(self, name, load, package):
            super().__init__(name, "module:Thing", "posattn.things")
            distribution = type("Distribution", (), {"name": package})()
            vars(self).update(load=load, dist=distribution)

    found = [Fake(*point) for point in points]
    monkeypatch.setattr(registry_module, "entry_points", lambda group: found)
    return Registry("thing", "posattn.things")


def raising(error):
    def load():
        raise error

    return load


def test_a_name_is_taken_once():
    things = Registry("thing", "posattn.none")
    things.add("a", Thing)
    with pytest.raises(DuplicateName, match="the thing name 'a' is already taken"):
        things.add("a", Other)
    with pytest.raises(DuplicateName):
        things.register("a")(Thing)
    assert things.get("a") is Thing


def test_an_unknown_name_gets_the_nearest_and_all_known_ones():
    things = Registry("thing", "posattn.none")
    things.register("disentangled")(Thing)
    with pytest.raises(UnknownName, match=r"did you mean 'disentangled'\? \(known: disentangled\)"):
        things.get("disentagled")
    with pytest.raises(UnknownName) as caught:
        things.get("xyz")
    assert "did you mean" not in str(caught.value)


def test_names_are_sorted_and_can_be_iterated_and_counted():
    things = Registry("thing", "posattn.none")
    things.add("b", Thing)
    things.add("a", Other)
    assert things.names() == list(things) == ["a", "b"]
    assert len(things) == 2
    assert "a" in things
    assert "c" not in things


@pytest.mark.parametrize(
    "error",
    [ImportError("no module"), SyntaxError("bad"), SystemExit(3), RuntimeError("x")],
)
def test_a_broken_plug_in_is_left_out_with_a_warning_that_names_it(monkeypatch, error):
    things = registry_with(
        monkeypatch, ("bad", raising(error), "bad-package"), ("good", lambda: Thing, "good-package")
    )
    things.add("builtin", Other)
    with pytest.warns(UserWarning, match=r"'bad' of the package 'bad-package' is left out"):
        assert things.names() == ["builtin", "good"]
    with pytest.raises(PluginError, match=r"'bad' comes from the package 'bad-package'"):
        things.get("bad")
    assert things.plugins()["good"].problem == ""


def test_a_builtin_name_is_found_without_loading_any_plug_in(monkeypatch):
    things = registry_with(monkeypatch, ("bad", raising(AssertionError("loaded")), "p"))
    things.add("builtin", Other)
    assert things.get("builtin") is Other


def test_ctrl_c_while_a_plug_in_loads_is_not_swallowed(monkeypatch):
    things = registry_with(monkeypatch, ("slow", raising(KeyboardInterrupt()), "p"))
    with pytest.raises(KeyboardInterrupt):
        things.names()


def test_two_packages_that_claim_one_name_are_both_refused(monkeypatch):
    things = registry_with(
        monkeypatch, ("a", lambda: Thing, "first"), ("a", lambda: Other, "second")
    )
    with pytest.warns(UserWarning, match="several packages claim this name"):
        assert things.names() == []
    with pytest.raises(PluginError, match="first, second"):
        things.get("a")


def test_a_plug_in_cannot_take_a_builtin_name(monkeypatch):
    things = registry_with(monkeypatch, ("builtin", lambda: Thing, "p"))
    things.add("builtin", Other)
    with pytest.warns(UserWarning, match="already taken"):
        things.names()
    assert things.get("builtin") is Other


def test_a_plug_in_cannot_register_other_names_than_its_own(monkeypatch):
    def load():
        things.add("sneaky", Other)
        return Thing

    things = registry_with(monkeypatch, ("honest", load, "p"))
    with pytest.warns(UserWarning, match=r"registers other names than its own: \['sneaky'\]"):
        assert things.names() == []


@pytest.fixture
def plugin_site(tmp_path):
    """A folder of installed plug-ins: one good, three broken in the ways people break them."""
    modules = {
        "good": GOOD,
        "no_import": "import module_that_is_not_there\n",
        "bad_syntax": "def broken(:\n",
        "exits": "import sys\nsys.exit(7)\n",
    }
    names = {"good": "shout", "no_import": "missing", "bad_syntax": "syntax", "exits": "exits"}
    for module, text in modules.items():
        (tmp_path / f"plug_{module}.py").write_text(text)
    info = tmp_path / "plug_collection-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: plug-collection\nVersion: 1.0\n")
    lines = [f"{names[module]} = plug_{module}:Shout" for module in modules]
    (info / "entry_points.txt").write_text(f"[{GROUP}]\n" + "\n".join(lines) + "\n")
    return tmp_path


def posattn(site, *arguments):
    code = f"import sys; sys.path.insert(0, {str(site)!r}); from posattn.cli.main import run; run()"
    return subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, timeout=120
    )


def test_real_entry_points_are_read_from_installed_distributions(plugin_site, monkeypatch):
    monkeypatch.syspath_prepend(str(plugin_site))
    found = {point.name for point in registry_module.entry_points(group=GROUP)}
    assert {"shout", "missing", "syntax", "exits"} <= found
    assert all(isinstance(point, EntryPoint) for point in registry_module.entry_points(group=GROUP))


def test_the_command_line_works_beside_broken_plug_ins(plugin_site, tmp_path):
    version = posattn(plugin_site, "--version")
    assert version.returncode == 0
    assert version.stdout.startswith("posattn ")
    builtin = posattn(plugin_site, "validate", "rope")
    assert builtin.returncode == 0, builtin.stderr
    good = posattn(
        plugin_site, "show", "rope", "--set", "encoder.mechanism={name: shout, loudness: 3}"
    )
    assert good.returncode == 0, good.stderr
    assert "loudness: 3.0" in good.stdout
    listing = posattn(plugin_site, "list", "mechanisms")
    assert listing.returncode == 0
    assert "plug-collection" in listing.stdout
    assert (
        "Warning: the mechanism plug-in 'exits' of the package 'plug-collection'" in listing.stderr
    )


@pytest.mark.parametrize("name", ["missing", "syntax", "exits"])
def test_a_recipe_that_needs_a_broken_plug_in_fails_with_its_name(plugin_site, name):
    done = posattn(plugin_site, "validate", "rope", "--set", f"encoder.mechanism={name}")
    assert done.returncode == 2
    assert f"the mechanism '{name}' comes from the package 'plug-collection'" in done.stderr


def test_a_plug_in_that_fails_the_check_is_refused_and_leaves_no_trace(monkeypatch):
    def load():
        checked.add("odd", Thing)
        return Thing

    things = registry_with(monkeypatch, ("odd", load, "p"), ("fine", lambda: Other, "q"))
    checked = Registry("thing", things.group, lambda name, entry: "odd" if entry is Thing else "")
    with pytest.warns(UserWarning, match="'odd' of the package 'p' is left out: odd"):
        assert checked.names() == ["fine"]


def test_a_check_that_fails_itself_stops_nothing(monkeypatch):
    things = registry_with(monkeypatch, ("a", lambda: Thing, "p"))
    checked = Registry("thing", things.group, lambda name, entry: 1 // 0)
    with pytest.warns(UserWarning, match="ZeroDivisionError"):
        assert checked.names() == []
