//! Roles: what each place of a step does in the model.
//!
//! From modules (`modules`), else from operators and the shapes of weights (`linear`, `patterns`), else the kernel's own name. A group
//! without operators of its own, as a graph replay is, borrows from one that has them (`borrow`). Nothing here lists models: the rules
//! are over names of operators and the relations of shapes. Times and counts are left alone.

mod borrow;
mod evidence;
mod linear;
mod modules;
mod patterns;
mod shapes;

use foldhash::fast::FixedState;
use hashbrown::HashMap;

use borrow::borrow_within;
pub use borrow::{BorrowedRoles, RoleDonor, borrow_roles, role_donors};
use evidence::{Names, Place, gather};
use linear::{Call, Product, experts, hidden, name_head, name_layer, product};
use modules::{Frames, ModuleRole, name_by_paths};
use patterns::{Named, PartPlaces, Widths};

use super::types::{Part, RoleSource, StepGroup, StepTable};
use crate::families::Family;
use crate::index::TraceIndex;

/// Names the rows of every group from what the trace itself has: modules and operators, then what one group can borrow from another.
pub(super) fn name_roles(index: &TraceIndex<'_>, table: &mut StepTable) {
    let trace = index.trace();
    let mut names = Names::new(trace);
    let mut queries = Vec::new();
    let mut gathered = Vec::with_capacity(table.groups.len());
    for group in &table.groups {
        let found = gather(index, group, &mut names);
        gathered.push((found.places, queries.len()..queries.len() + found.queries.len()));
        queries.extend(found.queries);
    }
    let frames = Frames::find(trace, &queries);
    for (group, (mut places, range)) in table.groups.iter_mut().zip(gathered) {
        let mut modules = vec![ModuleRole::default(); group.rows.len()];
        name_by_paths(trace, &queries[range.clone()], &mut modules);
        frames.name(range.start, &queries[range], &mut modules);
        for place in &mut places {
            place.module = std::mem::take(&mut modules[place.row]);
        }
        name_group(group, &places);
    }
    borrow_within(trace, table, &mut names);
}

/// Names the rows of a group from its own launches.
fn name_group(group: &mut StepGroup, places: &[Place<'_>]) {
    let mut parts: Vec<(Part, PartPlaces<'_, '_>)> = places
        .chunk_by(|a, b| group.rows[a.row].part == group.rows[b.row].part)
        .map(|chunk| {
            let part = group.rows[chunk[0].row].part;
            (part, PartPlaces::new(chunk, matches!(part, Part::Layer(_))))
        })
        .collect();
    for (_, part) in &mut parts {
        part.composed_attention();
    }
    let mut calls: Vec<Vec<Call>> = parts.iter().map(|(_, part)| calls_of(part)).collect();
    let hidden = name_products(group, &parts, &mut calls);
    let mut roles: Vec<(usize, String, RoleSource)> = Vec::new();
    for ((part, places), calls) in parts.iter_mut().zip(&calls) {
        name_by_path(places);
        for call in calls {
            if let Some((role, from)) = call.role {
                set_call(places, call, role, from);
            }
        }
        name_by_leaf(places);
        places.by_operator(*part == Part::Epilogue || group.layers.is_none());
        places.norms(&widths(hidden, calls));
        places.rope();
        let back = calls.iter().filter(|call| Some(call.product.n) == hidden && Some(call.product.k) != hidden);
        places.by_shape(hidden, &back.map(|call| call.product.k).collect::<Vec<u64>>());
        for call in calls {
            set_call(places, call, &format!("linear {}x{}", call.product.k, call.product.n), RoleSource::Operator);
        }
        name_by_function(places);
        roles.extend(numbered(places));
    }
    for (row, role, from) in roles {
        group.rows[row].role = role;
        group.rows[row].role_from = from;
    }
}

/// The matrix products of a part.
fn calls_of(part: &PartPlaces<'_, '_>) -> Vec<Call> {
    let mut calls: Vec<Call> = Vec::new();
    // Products that the operator of a whole layer of experts has launched so far.
    let mut of_experts = 0;
    for (at, place) in part.places.iter().enumerate() {
        if !place.is_joined {
            of_experts = 0;
        }
        if part.named[at].is_some() {
            continue;
        }
        if let Some(products) = experts(place) {
            if place.family == Family::Gemm {
                let product = products[usize::from(of_experts > 0)];
                of_experts += 1;
                calls.push(Call { product, first: at, end: at + 1, role: None });
            }
            continue;
        }
        let Some(product) = product(place) else { continue };
        match calls.last_mut() {
            Some(last) if place.is_joined && last.end == at => last.end = at + 1,
            _ => calls.push(Call { product, first: at, end: at + 1, role: None }),
        }
    }
    calls
}

/// Names matrix products of all parts, and gives the hidden size.
fn name_products(group: &StepGroup, parts: &[(Part, PartPlaces<'_, '_>)], calls: &mut [Vec<Call>]) -> Option<u64> {
    let layers = group.layers.as_ref()?;
    let kind_of = |part: Part| if let Part::Layer(kind) = part { layers.kinds.get(kind as usize) } else { None };
    let counted: Vec<(u32, &[Call])> =
        parts.iter().zip(&*calls).filter_map(|((part, _), calls)| Some((kind_of(*part)?.count, &calls[..]))).collect();
    let epilogue = parts.iter().position(|(part, _)| *part == Part::Epilogue);
    let hidden = hidden(&counted, epilogue.map_or(&[], |at| &calls[at]))?;
    // What products of these widths are in a layer, in order, where layers that have them agree.
    let mut known: HashMap<Product, Vec<&'static str>, FixedState> = HashMap::default();
    for ((part, places), calls) in parts.iter().zip(&mut *calls) {
        if kind_of(*part).is_none() {
            continue;
        }
        name_layer(calls, &places.attention(), hidden);
        for (product, roles) in by_product(calls, |_, call| call.role.map(|(role, _)| role)) {
            let roles: Option<Vec<&'static str>> = roles.into_iter().collect();
            let roles = roles.unwrap_or_default();
            let agreed = known.entry(product).or_insert_with(|| roles.clone());
            if *agreed != roles {
                agreed.clear();
            }
        }
    }
    if let Some(epilogue) = epilogue {
        name_head(&mut calls[epilogue], hidden);
    }
    // Where the boundary of layers is rotated, pieces of a layer are before the first or after the last.
    for ((part, _), calls) in parts.iter().zip(calls) {
        if kind_of(*part).is_some() {
            continue;
        }
        for (product, positions) in by_product(calls, |at, _| at) {
            let Some(roles) = known.get(&product) else { continue };
            for (nth, &at) in positions.iter().enumerate() {
                let role = if positions.len() == roles.len() { roles.get(nth) } else { roles.first().filter(|_| roles.len() == 1) };
                if calls[at].role.is_none() {
                    calls[at].role = role.map(|&role| (role, RoleSource::Inferred));
                }
            }
        }
    }
    Some(hidden)
}

/// Something of each call, by product, in order.
fn by_product<T>(calls: &[Call], each: impl Fn(usize, &Call) -> T) -> HashMap<Product, Vec<T>, FixedState> {
    let mut by_product: HashMap<Product, Vec<T>, FixedState> = HashMap::default();
    for (at, call) in calls.iter().enumerate() {
        by_product.entry(call.product).or_default().push(each(at, call));
    }
    by_product
}

/// How wide queries and keys are, from the layer's own products.
fn widths(hidden: Option<u64>, calls: &[Call]) -> Widths {
    let of = |wanted: &str| calls.iter().find(|call| call.role.is_some_and(|(role, _)| role == wanted)).map(|call| call.product);
    let query = of("o_proj").map(|product| product.k);
    let fused = of("qkv_proj").and_then(|product| Some(product.n.checked_sub(query?)? / 2));
    Widths { hidden, query, key: of("k_proj").map(|product| product.n).or(fused) }
}

/// Names the places of a call that have no role yet.
fn set_call(places: &mut PartPlaces<'_, '_>, call: &Call, role: &str, from: RoleSource) {
    let number = places.new_call();
    for at in call.first..call.end {
        if places.named[at].is_none() {
            places.set(at, role, from, Some(number));
        }
    }
}

/// Paths name a module wholly; two calls of it are the same module.
fn name_by_path(places: &mut PartPlaces<'_, '_>) {
    for (at, place) in places.places.iter().enumerate() {
        if let Some(path) = &place.module.path {
            places.set(at, path, RoleSource::Module, None);
        }
    }
}

/// Modules known by class only. The class of a linear layer says less than its shapes did.
fn name_by_leaf(places: &mut PartPlaces<'_, '_>) {
    for (at, place) in places.places.iter().enumerate() {
        if let Some(leaf) = &place.module.leaf
            && places.named[at].is_none()
        {
            places.set(at, leaf, RoleSource::Module, None);
        }
    }
}

/// What is left in a module that holds others: the function that did it.
fn name_by_function(places: &mut PartPlaces<'_, '_>) {
    let mut before: Option<(usize, &str)> = None;
    let mut number = 0;
    for (at, place) in places.places.iter().enumerate() {
        if let Some(function) = &place.module.function
            && places.named[at].is_none()
        {
            if before.is_none_or(|before| before != (at.wrapping_sub(1), function)) {
                number = places.new_call();
            }
            places.set(at, function, RoleSource::Module, Some(number));
            before = Some((at, function));
        }
    }
}

/// Rows of a part with their roles; a role that several calls have gets their number.
fn numbered(part: &PartPlaces<'_, '_>) -> Vec<(usize, String, RoleSource)> {
    let mut numbers: HashMap<&str, Vec<u32>, FixedState> = HashMap::default();
    for named in part.named.iter().flatten() {
        if let Some(call) = named.call {
            let calls = numbers.entry(&named.role).or_default();
            // The places of one call mostly follow each other.
            if calls.last() != Some(&call) {
                calls.push(call);
            }
        }
    }
    let mut ordinals: HashMap<(&str, u32), usize, FixedState> = HashMap::default();
    let mut counts: HashMap<&str, usize, FixedState> = HashMap::default();
    for (&role, calls) in &numbers {
        for &call in calls {
            let next = counts.get(role).copied().unwrap_or(0) + 1;
            if *ordinals.entry((role, call)).or_insert(next) == next {
                counts.insert(role, next);
            }
        }
    }
    let text = |named: &Named| match named.call {
        Some(call) if counts.get(&named.role[..]).is_some_and(|&count| count > 1) => {
            format!("{} #{}", named.role, ordinals.get(&(&named.role[..], call)).copied().unwrap_or(1))
        }
        _ => named.role.clone(),
    };
    let rows = part.places.iter().zip(&part.named);
    rows.filter_map(|(place, named)| named.as_ref().map(|named| (place.row, text(named), named.from))).collect()
}

#[cfg(test)]
mod tests;
