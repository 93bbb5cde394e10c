"""What only root may do on a host, as POSIX shell text: tune it, make its disk fresh, nothing else.

If the user of SSH is root, the text of one profile is run as it is. Else the host has a program of its
own, `/usr/local/sbin/knickpoint-tune`, which belongs to root and holds the text of all profiles; a line
for sudo lets the user run exactly that. It takes no shell text from anybody: a name out of a list, and
a directory that is checked character by character.
"""

import shlex
from collections.abc import Iterable

from perf.hosts.remote import Remote
from perf.hosts.tuning.profiles import TuningProfile, label, list_profiles, load_profile
from perf.hosts.tuning.proof import MARKER
from perf.model.errors import HostUnfit

PROGRAM = "/usr/local/sbin/knickpoint-tune"
_APPLY_TIMEOUT_S = 300.0
_USAGE = "knickpoint-tune PROFILE WORK_DIR [SETTING TO LEAVE ALONE]..."
_FRESHEN_USAGE = "knickpoint-tune --fresh-disk DIRECTORY [--drop-caches] [--trim]"

_CHECK = r"""
PATH=/usr/sbin:/usr/bin:/sbin:/bin
export PATH
umask 022
nl='
'

refuse() {
  echo "$1" >&2
  exit 2
}

# The caller may be anybody whom sudo lets run this: an absolute path of plain characters, no way up.
check_directory() {
  case $1 in
    /*) ;;
    *) refuse "not an absolute path" ;;
  esac
  case $1 in
    *[!A-Za-z0-9/._-]* | */../* | */.. | */)
      refuse "a path of letters, digits and ._- only, without .. and with no / at its end"
      ;;
  esac
}
"""

_FRESHEN = r"""
# freshen DIRECTORY [--drop-caches] [--trim]: print what was done. All is written out first, so that
# what was deleted is free; caches are dropped last, since trimming reads them full again.
freshen() {
  directory=$1
  shift
  { [ -d "$directory" ] && [ ! -L "$directory" ]; } || refuse "no directory: $directory"
  [ -z "${SUDO_UID-}" ] || [ "$(stat -c %u "$directory")" = "$SUDO_UID" ] ||
    refuse "not a directory of the user who asks: $directory"
  drops= trims=
  for what; do
    case $what in
      --drop-caches) drops=1 ;;
      --trim) trims=1 ;;
      *) refuse "no such option: $what" ;;
    esac
  done
  sync || exit 1
  if [ -n "$trims" ]; then
    if said=$(LC_ALL=C fstrim -v "$directory" 2>&1); then
      echo "trim done ${said##*: }"
    else
      case $said in
        *"not supported"*) echo "trim not supported" ;;
        *) refuse "fstrim: ${said%%"$nl"*}" ;;
      esac
    fi
  fi
  if [ -n "$drops" ]; then
    echo 3 >/proc/sys/vm/drop_caches || exit 1
    echo "page_cache dropped"
  fi
}
"""

_TUNE = rf"""
# fits HOW FOUND WANTED: the same rules as perf/hosts/tuning/proof.py
fits() {{
  case $1 in
    equal) [ "$2" = "$3" ] ;;
    contains) case " $2 " in *" $3 "*) ;; *) return 1 ;; esac ;;
    at-least)
      [ "$2" = unlimited ] && return 0
      [ "$3" = unlimited ] && return 1
      case $2 in '' | *[!0-9]*) return 1 ;; esac
      [ "$2" -ge "$3" ]
      ;;
    *) return 1 ;;
  esac
}}

# tune NAME HOW VALUE READ APPLY: a setting is left alone that the host lacks, that is as wanted, or
# that the testbed declares unavailable.
tune() {{
  case " $left_alone " in *" $1 "*) return 0 ;; esac
  value=$3
  export value
  found=$(sh -c "$4" </dev/null 2>/dev/null) || return 0
  found=${{found%%"$nl"*}}
  [ -n "$found" ] || return 0
  fits "$2" "$found" "$3" && return 0
  said=$(sh -c "$5" </dev/null 2>&1) || echo "$1: ${{said%%"$nl"*}}" >&2
  return 0
}}

# There is no marker while it is not known what the host is tuned to.
begin_tuning() {{
  rm -f {MARKER} && mkdir -p {MARKER.rpartition("/")[0]}
}}

end_tuning() {{
  echo "$1" >{MARKER}.new && mv {MARKER}.new {MARKER}
}}
"""


_ARGUMENTS = r"""
check_directory "${1-}"
work_dir=$1
export work_dir
shift
for name; do
  case $name in '' | *[!a-z0-9._-]*) refuse "no name of a setting: $name" ;; esac
done
left_alone=$*
"""


def render_profile(profile: TuningProfile) -> str:
    """Return the shell text that applies one profile.

    Its arguments: the directory of the host's nodes, then the names of settings to leave alone.
    """
    return f"{_CHECK}{_TUNE}{_ARGUMENTS}{_render_settings(profile)}"


def render_freshen() -> str:
    """Return the shell text that makes a disk fresh; its arguments: the directory, then what to do."""
    return f'{_CHECK}{_FRESHEN}\ncheck_directory "${{1-}}"\nfreshen "$@"\n'


def render_script() -> str:
    """Return the text of `/usr/local/sbin/knickpoint-tune`, with all profiles."""
    profiles = [load_profile(name) for name in list_profiles()]
    functions = "\n".join(
        f"apply_{_identify(profile.name)}() {{\n{_render_settings(profile)}}}\n" for profile in profiles
    )
    cases = "\n".join(f"  {one.name}) apply_{_identify(one.name)} ;;" for one in profiles)
    return (
        "#!/bin/sh\n"
        "# Written by `knickpoint host script`; do not change it here. Belongs to root, mode 0755.\n"
        f"# usage: {_USAGE}\n"
        f"#        {_FRESHEN_USAGE}\n"
        f"# profiles: {' '.join(list_profiles())}\n"
        f"{_CHECK}{_FRESHEN}{_TUNE}\n{functions}\n"
        f'[ "$#" -ge 2 ] || refuse "usage: {_USAGE}, or {_FRESHEN_USAGE}"\n'
        'if [ "$1" = --fresh-disk ]; then\n'
        "  shift\n"
        '  check_directory "$1"\n'
        '  freshen "$@"\n'
        "  exit\n"
        "fi\n"
        "profile=$1\nshift\n"
        f"{_ARGUMENTS}"
        "case $profile in\n"
        f"{cases}\n"
        '  *) refuse "no such profile: $profile" ;;\n'
        "esac\n"
    )


def _identify(name: str) -> str:
    return name.replace("-", "_").replace(".", "_")


def _render_settings(profile: TuningProfile) -> str:
    lines = ["begin_tuning || exit 1"]
    for setting in profile.settings:
        if setting.apply is not None:
            words = (setting.name, setting.matches, setting.value, setting.read, setting.apply)
            lines.append("tune " + " ".join(shlex.quote(word) for word in words))
    return "\n".join((*lines, f"end_tuning {shlex.quote(label(profile))}", ""))


def apply_profile(
    remote: Remote, profile: TuningProfile, work_dir: str, left_alone: Iterable[str], *, is_root: bool
) -> str:
    """Tune a host; give what it complained of, a line for each setting that refused.

    Whether all is as wanted afterwards is seen by reading it back.

    Raises:
        HostUnfit: this user may not tune the host.
        StepFailed: the host cannot be reached.

    """
    if is_root:
        command, text = ["sh", "-s", "--"], render_profile(profile)
    else:
        command, text = ["sudo", "-n", PROGRAM, profile.name], ""
    command += [work_dir, *sorted(left_alone)]
    done = remote.run(command, stdin=text, check=False, timeout_s=_APPLY_TIMEOUT_S)
    if done.returncode:
        why = done.stderr.strip()[-500:] or f"exit {done.returncode}"
        raise HostUnfit(
            f"it cannot be tuned: {why}\n"
            f"    prepare it with Ansible (infra/), or install {PROGRAM} as root, with what "
            "`knickpoint host script` prints, and let sudo run it without a password"
        )
    return done.stderr
