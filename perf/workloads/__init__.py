"""All that follows from a workload alone: keys, records, queries, stages. Pure and seeded."""
