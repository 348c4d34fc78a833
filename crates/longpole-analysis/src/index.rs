//! What several analyses need of a trace, computed once: the host call tree and the links from launches to activities.
