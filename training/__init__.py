"""The configuration agent: data set, network, replay evaluation, registry and gate."""
