"""`brainlsap completion`: a script by which a shell completes commands and options."""

import argparse
from typing import Any, NamedTuple

SHELLS = ("bash", "zsh")

BASH = """\
# brainlsap completion bash > ~/.local/share/bash-completion/completions/brainlsap
_brainlsap() {{
  local word="${{COMP_WORDS[COMP_CWORD]}}" before="${{COMP_WORDS[COMP_CWORD-1]}}"
  local words=""
  COMPREPLY=()
  if [ "$COMP_CWORD" -eq 1 ]; then
    words="{commands} --help --version"
  else
    case "${{COMP_WORDS[1]}} $before" in
{choices}
      *) case "$word" in -*) case "${{COMP_WORDS[1]}}" in
{options}
      esac ;; esac ;;
    esac
  fi
  [ -n "$words" ] && COMPREPLY=($(compgen -W "$words" -- "$word"))
  return 0
}}
complete -o default -F _brainlsap brainlsap
"""

ZSH = """\
#compdef brainlsap
# brainlsap completion zsh > a file named _brainlsap in a folder of $fpath
_brainlsap() {{
  local given=""
  if (( CURRENT == 2 )); then
    given="{commands} --help --version"
  else
    case "${{words[2]}} ${{words[CURRENT-1]}}" in
{choices}
      *) case "${{words[CURRENT]}}" in -*) case "${{words[2]}}" in
{options}
      esac ;; esac ;;
    esac
  fi
  if [[ -n $given ]]; then compadd -- ${{=given}}; else _files; fi
}}
compdef _brainlsap brainlsap
"""


class Words(NamedTuple):
    """What can follow: options of each command, choices of each of its options."""

    options: dict[str, list[str]]
    choices: dict[tuple[str, str], list[str]]


def add(commands: Any) -> None:
    """Add the command and its options."""
    completion = commands.add_parser(
        "completion",
        help="print a script by which bash or zsh complete commands and options",
    )
    completion.add_argument("shell", choices=SHELLS)


def call(options: argparse.Namespace) -> None:
    """Run the command."""
    print(completion_script(options.shell), end="")


def completion_script(shell: str) -> str:
    """Return the script of a shell, made from the commands as they are now."""
    found = _find_words()
    name = "words" if shell == "bash" else "given"
    choices = "\n".join(
        f'      "{command} {option}") {name}="{" ".join(words)}" ;;'
        for (command, option), words in found.choices.items()
    )
    options = "\n".join(
        f'        {command}) {name}="{" ".join(words)}" ;;'
        for command, words in found.options.items()
    )
    text = BASH if shell == "bash" else ZSH
    commands = " ".join(found.options)
    return text.format(commands=commands, choices=choices, options=options)


def _find_words() -> Words:
    from brainlsap.commands import add_commands

    subparsers = argparse.ArgumentParser("brainlsap").add_subparsers()
    add_commands(subparsers)
    found = Words({}, {})
    for name, parser in subparsers.choices.items():
        found.options[name] = []
        for action in parser._actions:
            found.options[name] += action.option_strings
            if action.choices and action.option_strings:
                words = [str(choice) for choice in action.choices]
                for option in action.option_strings:
                    found.choices[name, option] = words
    return found
