import shutil
import subprocess

import pytest

from brainlsap.cli import main
from brainlsap.commands import COMMANDS
from brainlsap.commands.completion import completion_script


def complete_in_bash(tmp_path, *words):
    """Return what bash offers for the last of these words."""
    if shutil.which("bash") is None:
        pytest.skip("bash is not installed")
    script = tmp_path / "completion.sh"
    script.write_text(completion_script("bash"))
    quoted = " ".join(f"'{word}'" for word in ("brainlsap", *words))
    asked = (
        f"source {script}; COMP_WORDS=({quoted}); COMP_CWORD={len(words)}; "
        'set -u; _brainlsap; echo "${COMPREPLY[*]:-}"'
    )
    done = subprocess.run(
        ["bash", "-c", asked], capture_output=True, text=True, check=True
    )
    assert done.stderr == ""
    return done.stdout.split()


def test_bash_offers_every_command(tmp_path):
    assert set(COMMANDS) <= set(complete_in_bash(tmp_path, ""))


def test_bash_offers_what_begins_so(tmp_path):
    assert complete_in_bash(tmp_path, "atl") == ["atlases"]
    assert complete_in_bash(tmp_path, "run", "study", "--kern") == ["--kernel"]


def test_bash_offers_what_all_writing_commands_share(tmp_path):
    assert complete_in_bash(tmp_path, "run", "--own") == ["--owner-only"]
    assert complete_in_bash(tmp_path, "verify", "--own") == []


def test_bash_offers_the_choices_of_an_option(tmp_path):
    assert complete_in_bash(tmp_path, "run", "--scans", "") == ["all", "baseline"]


def test_bash_leaves_files_to_the_shell(tmp_path):
    assert complete_in_bash(tmp_path, "run", "stu") == []


@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_shells_take_the_script(shell, tmp_path):
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    script = tmp_path / "completion"
    script.write_text(completion_script(shell))
    done = subprocess.run([shell, "-n", str(script)], capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")


def test_command_prints_the_script(capsys):
    assert main(["completion", "zsh"]) == 0
    printed = capsys.readouterr().out
    assert printed == completion_script("zsh")
    assert printed.startswith("#compdef brainlsap\n")
    assert '"run --scans") given="all baseline"' in printed


def test_unknown_shell_is_refused(capsys):
    with pytest.raises(SystemExit) as stop:
        main(["completion", "fish"])
    assert stop.value.code == 2
    assert "invalid choice: 'fish'" in capsys.readouterr().err
