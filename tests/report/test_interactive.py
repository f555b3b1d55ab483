import base64
import json
import os
import re
import shutil
import subprocess

import numpy as np
import pandas as pd
import pytest
from matplotlib import colormaps

from brainlsap.data.atlas import load_atlas
from brainlsap.exceptions import ParameterError
from brainlsap.report import interactive_html, write_interactive
from brainlsap.report.surface_mesh import cut_mesh

ATLAS = load_atlas("destrieux160")
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)
SCRIPT = "</script><script>alert(1)</script>"


def draw_values(seed=0):
    rng = np.random.default_rng(seed)
    return pd.Series(rng.uniform(0.2, 1.7, size=len(ATLAS)), index=ATLAS.names)


def two_maps():
    values = draw_values(1)
    values.iloc[11] = np.nan
    return {SCRIPT: values, "two": draw_values(2)}


def data_of(html):
    return json.loads(re.search(r'id="data">(.*?)</script>', html, re.DOTALL)[1])


def unpacked(text, kind):
    return np.frombuffer(base64.b64decode(text), dtype=kind)


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    path = tmp_path_factory.mktemp("brain") / "brain.html"
    return write_interactive(
        two_maps(), path, ATLAS, title="A <b>title", colorbar_label="heat scale"
    )


def test_the_page_is_small_and_asks_nobody(page):
    html = page.read_text(encoding="utf-8")
    assert len(html) < 2_000_000
    assert (
        "//"
        not in re.sub(r"^\s*//.*$", "", html, flags=re.MULTILINE).split('id="data">')[0]
    )
    assert not re.search(r"https?:|src=|url\(|import\s*\(|fetch\(", html)
    assert "default-src 'none'" in html


def test_texts_of_users_stay_text(page):
    html = page.read_text(encoding="utf-8")
    assert "alert(1)</script>" not in html
    assert "<b>title" not in html
    assert html.count("<script") == 2
    assert data_of(html)["maps"][0]["name"] == SCRIPT


def test_the_page_holds_values_ranks_and_colours_by_name(page):
    data = data_of(page.read_text(encoding="utf-8"))
    assert [name for name, _ in data["regions"]] == list(ATLAS.names)
    maps = two_maps()
    lowest = min(values.min() for values in maps.values())
    highest = max(values.max() for values in maps.values())
    for told, values in zip(data["maps"], maps.values(), strict=True):
        np.testing.assert_allclose(
            np.array(told["values"], dtype=float), values, rtol=1e-5
        )
        ranks = values.rank(method="min")
        np.testing.assert_array_equal(np.array(told["ranks"], dtype=float), ranks)
        share = (values.iloc[5] - lowest) / (highest - lowest)
        colour = colormaps["viridis"](share, bytes=True)
        assert told["colours"][5] == "#{:02x}{:02x}{:02x}".format(*colour)
    assert data["maps"][0]["colours"][11] == "#b4b4b4"
    assert data["bar"]["low"] == pytest.approx(lowest)


def test_the_largest_can_have_rank_one_and_equals_share_a_rank():
    values = {"lh_G_rectus": 3.0, "rh_G_rectus": 3.0, "lh_S_central": 1.0}
    html = interactive_html(values, ATLAS, meshes=["inflated"], top="largest")
    (told,) = data_of(html)["maps"]
    ranks = [told["ranks"][ATLAS.find(name)] for name in values]
    assert ranks == [1, 1, 3]
    assert told["ranked"] == 3
    assert data_of(html)["order"] == "Rank 1 is the largest value."


def test_meshes_survive_the_packing(page):
    data = data_of(page.read_text(encoding="utf-8"))
    kinds = [(part["kind"], part["side"]) for part in data["parts"]]
    assert kinds == [
        ("cortex", "L"),
        ("cortex", "R"),
        ("subcortex", "L"),
        ("subcortex", "R"),
    ]
    part, cut = data["parts"][1], cut_mesh(ATLAS, "inflated", "R")
    points = unpacked(part["points"][0], "<i2").reshape(-1, 3) / 100
    np.testing.assert_allclose(points, cut.points, atol=0.0051)
    faces = unpacked(part["faces"], "<u2").reshape(-1, 3)
    np.testing.assert_array_equal(faces, cut.faces)
    np.testing.assert_array_equal(unpacked(part["region"], "<i2"), cut.region)
    assert len(part["points"]) == 2
    regions = [unpacked(one["region"], "<i2") for one in data["parts"]]
    assert set(np.concatenate(regions)) == {-2, *range(len(ATLAS))}


def test_what_cannot_be_shown_is_refused():
    with pytest.raises(ParameterError, match=r"mesh must be one of .*got 'flat'"):
        interactive_html(draw_values(), ATLAS, meshes=["flat"])
    with pytest.raises(ParameterError, match=r"top must be one of .*got 'best'"):
        interactive_html(draw_values(), ATLAS, top="best")


# --- in a browser

PROBE = """
<script>
window.addEventListener("load", () => setTimeout(() => {
  const canvas = document.getElementById("brain"), told = {};
  const says = () => document.getElementById("says").textContent;
  const sweep = () => {
    const box = canvas.getBoundingClientRect(), found = {};
    for (let x = 4; x < box.width; x += 11) for (let y = 4; y < box.height; y += 11) {
      const where = { clientX: box.left + x, clientY: box.top + y, bubbles: true };
      canvas.dispatchEvent(new PointerEvent("pointermove", where));
      const share = x / box.width, text = says();
      const [low, high] = found[text] || [share, share];
      found[text] = [Math.min(low, share), Math.max(high, share)];
    }
    return found;
  };
  const choose = (name, place) => {
    const menu = document.getElementById(name);
    menu.selectedIndex = place;
    menu.dispatchEvent(new Event("change"));
  };
  const press = (key) => canvas.dispatchEvent(new KeyboardEvent("keydown", { key }));
  const all = (what) => [...document.querySelectorAll(what)];
  const steps = [
    () => { told.options = all("#map option").map((one) => one.textContent); },
    () => { told.top = sweep(); },
    () => { choose("view", 2); },
    () => { told.outerLeft = sweep(); },
    () => { choose("view", 5); choose("map", 1); choose("mesh", 1); },
    () => { told.innerRight = sweep(); },
    () => { told.rows = all("#rows tr").map((one) => one.textContent); },
    () => { document.getElementById("all").open = true; },
    () => { all("#rows button")[0].focus(); told.focused = says(); },
    () => { choose("view", 0); press("ArrowLeft"); },
    () => { for (let i = 0; i < 30; i++) press("ArrowDown"); },
    () => { told.turned = sweep(); },
  ];
  const next = () => {
    const step = steps.shift();
    if (step) { step(); setTimeout(next, 120); return; }
    const out = document.createElement("pre");
    out.id = "probe";
    out.textContent = JSON.stringify(told);
    document.body.append(out);
  };
  next();
}, 200));
</script>
"""


@pytest.fixture(scope="module")
def browsed(page, tmp_path_factory):
    """Open the page headless, point everywhere, and return what it said."""
    if CHROMIUM is None:
        pytest.skip("needs Chromium (apt-get install chromium)")
    folder = tmp_path_factory.mktemp("browser")
    probed = folder / "probed.html"
    html = page.read_text(encoding="utf-8")
    probed.write_text(html.replace("</body>", PROBE + "</body>"), encoding="utf-8")
    done = subprocess.run(
        [
            *(CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu"),
            *("--enable-logging=stderr", "--window-size=1000,900", "--dump-dom"),
            *(f"--user-data-dir={folder / 'profile'}", "--virtual-time-budget=6000"),
            *("--host-resolver-rules=MAP * ~NOTFOUND", probed.as_uri()),
        ],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        env={**os.environ, "HOME": str(folder)},
    )
    found = re.search(r'<pre id="probe">(.*?)</pre>', done.stdout, re.DOTALL)
    assert found, done.stderr[-2000:]
    text = found[1].replace("&amp;", "&").replace("&lt;", "<").replace("&gt;", ">")
    return json.loads(text), done.stderr


def names_in(found):
    return {text.split(" (")[0] for text in found if "ctx_" in text or "-" in text[:6]}


def test_nothing_is_written_to_the_console(browsed):
    _, log = browsed
    assert "CONSOLE" not in log


def test_pointing_says_region_value_and_rank(browsed):
    told, _ = browsed
    assert told["options"] == [SCRIPT, "two"]
    values = two_maps()[SCRIPT]
    place = ATLAS.find("lh_S_central")
    rank = int(values.rank().iloc[place])
    expected = (
        f"{ATLAS.names[place]} ({ATLAS.regions['long_name'][place]}): "
        f"{float(f'{values.iloc[place]:.4g}')}, rank {rank} of {len(ATLAS) - 1}"
    )
    assert expected in told["outerLeft"]
    assert "Point at a region." in told["top"]


def test_every_view_shows_its_side(browsed):
    told, _ = browsed
    outer = names_in(told["outerLeft"])
    assert len(outer) > 40
    assert all(one.startswith(("ctx_lh", "Left-")) for one in outer)
    inner = names_in(told["innerRight"])
    assert "ctx_rh_G_precuneus" in inner
    assert "ctx_rh_S_central" not in outer | inner
    assert all(one.startswith(("ctx_rh", "Right-")) for one in inner)
    for text, (low, high) in told["top"].items():
        if text.startswith("ctx_lh"):
            assert high < 0.35  # left is left: the subcortex takes the right third
        if text.startswith("ctx_rh"):
            assert 0.33 < low <= high < 0.68


def test_the_subcortex_stands_beside(browsed):
    told, _ = browsed
    spans = {text.split(" (")[0]: span for text, span in told["top"].items()}
    assert spans["Left-Putamen"][0] > 0.68
    assert spans["Left-Putamen"][1] < spans["Right-Putamen"][0]


def test_keyboard_table_and_menu(browsed):
    told, _ = browsed
    values = two_maps()["two"]
    smallest = ATLAS.names[int(values.argmin())]
    assert len(told["rows"]) == len(ATLAS)
    assert told["rows"][0].startswith(f"1{smallest}")
    assert told["focused"].startswith(f"{smallest} (")
    assert "rank 1 of 160" in told["focused"]
    assert names_in(told["turned"]) != names_in(told["top"])
