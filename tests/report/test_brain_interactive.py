import dataclasses
import re

import numpy as np
import pandas as pd
import pytest

from brainlsap.atlas import load_atlas
from brainlsap.exceptions import ParameterError
from brainlsap.report.brain_interactive import interactive_brain, write_interactive

ATLAS = load_atlas("desikan82")
MAPS = {
    "first": pd.Series(np.linspace(0, 1, len(ATLAS)), index=ATLAS.names),
    "second": pd.Series(np.linspace(1, 0, len(ATLAS)), index=ATLAS.names),
}
HOSTILE = "</script><img src=x onerror=alert(1)>"


def regions_shown(figure):
    """Return the traces of regions by the name that hovering shows."""
    texts = [trace.hovertext or "" for trace in figure.data]
    names = [text.split("<br>")[1] if "<br>" in text else text for text in texts]
    return dict(zip(names, figure.data, strict=True))


def test_hovering_names_every_region_with_its_value():
    maps = {**MAPS, "first": MAPS["first"].drop("Left-Amygdala")}
    shown = regions_shown(interactive_brain(maps, ATLAS))
    assert set(ATLAS.names) <= set(shown)
    assert shown["ctx-lh-bankssts"].hovertext == (
        "<b>left banks of the superior temporal sulcus</b><br>ctx-lh-bankssts<br>0"
    )
    assert shown["Left-Amygdala"].hovertext.endswith("<br>no value")
    assert shown["Left-Amygdala"].color == "#b4b4b4"
    assert shown["ctx-lh-bankssts"].color == "#440154"  # the lowest of viridis
    assert shown["no region"].color == "#ededed"


def test_a_menu_switches_between_maps():
    figure = interactive_brain(MAPS, ATLAS, colorbar_label="SUVR")
    menu = figure.layout.updatemenus[0]
    assert [button.label for button in menu.buttons] == ["first", "second"]
    look, traces = menu.buttons[1].args
    texts = [trace.hovertext for trace in figure.data[:-1]]
    place = next(k for k, text in enumerate(texts) if "ctx-lh-bankssts" in text)
    assert look["color"][traces.index(place)] == "#fde725"  # the highest of viridis
    assert look["hovertext"][place].endswith("<br>1")
    bar = figure.data[-1].marker
    assert (bar.cmin, bar.cmax, bar.colorbar.title.text) == (0, 1, "SUVR")
    single = interactive_brain(MAPS["first"], ATLAS).layout.updatemenus
    assert [menu.buttons[0].label for menu in single] == ["Dorsal"]


def test_views_show_their_hemisphere_and_the_subcortex_stands_alone():
    figure = interactive_brain(MAPS, ATLAS)
    texts = [trace.hovertext or "" for trace in figure.data]
    seen = {
        one.label: np.array(texts)[one.args[0]["visible"]]
        for one in figure.layout.updatemenus[1].buttons
    }
    assert len(seen) == 7
    for view, side in (("Lateral left", "ctx-lh"), ("Medial right", "ctx-rh")):
        named = {text for text in seen[view] if "ctx-" in text or "Thalamus" in text}
        assert named
        assert all(side in text for text in named)
    below = seen["Subcortex"]
    assert len(below) == 14 + 1  # and the bar
    assert not any("ctx-" in text for text in below)


def test_the_page_fetches_nothing_and_names_cannot_break_out(tmp_path):
    maps = {HOSTILE: MAPS["first"], "second": MAPS["second"]}
    regions = ATLAS.regions.assign(long_name=HOSTILE)
    atlas = dataclasses.replace(ATLAS, regions=regions)
    how = {"title": HOSTILE, "colorbar_label": HOSTILE}
    path = write_interactive(maps, tmp_path / "brain.html", atlas, **how)
    text = path.read_text("utf-8")
    tags = re.sub(r"(<script[^>]*>).*?</script>", r"\1", text, flags=re.DOTALL)
    assert not re.search(r"<img|(src|href)=", tags)
    assert HOSTILE not in text
    assert "onerror" in text  # there, as text
    again = write_interactive(maps, tmp_path / "again.html", atlas, **how)
    assert again.read_bytes() == path.read_bytes()
    figure = interactive_brain(maps, atlas, **how)
    shown = [trace.hovertext or "" for trace in figure.data]
    shown += [b.label for menu in figure.layout.updatemenus for b in menu.buttons]
    shown += [figure.layout.title.text, figure.data[-1].marker.colorbar.title.text]
    assert not any("<img" in text for text in shown)


def test_what_cannot_be_turned_is_refused():
    own = dataclasses.replace(ATLAS, name="own", folder=None)
    with pytest.raises(ParameterError, match=r"no surfaces.*plot_regions"):
        interactive_brain(MAPS, own)
