"""The control groups around a process, which may hold it back: as a shell function, for one command."""

DEFINE_CPU_GROUPS = r"""
# Print the directory of each group around this process that may limit its CPU, in either version of
# control groups. In a container the paths may be those of its host, which do not exist here.
cpu_groups() {
  while IFS=: read -r _ controllers path; do
    case ,$controllers, in
      ,,) root=/sys/fs/cgroup ;;
      *,cpu,*) root=/sys/fs/cgroup/cpu ;;
      *) continue ;;
    esac
    while true; do
      [ -d "$root$path" ] && echo "$root$path"
      [ -n "$path" ] || break
      path=${path%/*}
    done
  done </proc/self/cgroup
}
"""
