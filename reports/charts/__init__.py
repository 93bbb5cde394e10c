"""Charts, as Vega-Lite specifications or as SVG: from what a view already says, without a colour."""
