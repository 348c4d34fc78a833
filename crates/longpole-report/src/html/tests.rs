//! Pages as wholes.
