"""Report what was judged: the site, comments on pull requests, notifications.

Rooms, top first; each may import those below it:

- `commands`: one file per command.
- `clients`: all that goes over the network: GitHub, webhooks.
- `pages`: a folder per kind of page; `whole_site` puts them together, `report` asks whether it must.
- `pull_requests`, `notifications`: decided and written without a network.
- `site`: the site context, rendering, publishing; base templates and shared scripts and styles.
- `wording`: how things are said on more than one page.
- `demo`: recorded data only.
"""
