"""Judge what was measured: series, change points, incidents, comparisons, bisections.

Rooms, top first; each may import those below it:

- `commands`: one file per command.
- `orchestration`: the edges: read the history, measure what is asked, save the answers.
- `judging`: a whole history: series, incidents, triage; pure.
- `bisecting`: which release brought a change; pure.
- `comparing`: two sides that ran interleaved; pure.
- `detection`: the change points of one series; pure.
"""
