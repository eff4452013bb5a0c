// Whether the columns of a table hold what their roles need.
//
// Private to the loaders. Pure functions; thread-safe.
#pragma once

#include "table.h"
#include "table_roles.h"

namespace sotto {

/// Throws Error unless the columns hold what their roles need: features numbers or true and false,
/// targets of a regression numbers, classes anything, with nothing missing but where rows are to be
/// skipped for it; all with one decimal mark.
void check_columns(const TableFile& table, const TableRoles& roles, const TableRequest& request);

}  // namespace sotto
