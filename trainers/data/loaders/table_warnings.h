// What looks odd in a table and is no fault: columns that were left out or say nothing, numbers of
// rows among the features, features that give the answer away.
//
// Private to the loaders. Pure functions; thread-safe.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "table.h"
#include "table_roles.h"

namespace sotto {

/// Warnings about a table with columns in these roles; each names the file.
std::vector<std::string> warnings_of(const TableFile& table, const TableRoles& roles,
                                     const TableRequest& request);

/// Warns of each feature in which a number such as -999 seems to stand for missing values.
/// `features` are rows × features.
void warn_of_missing_codes(const TableFile& table, const TableRoles& roles,
                           std::span<const double> features, std::vector<std::string>& warnings);

/// Warns of each feature that has another value for each class, and the same one in all its rows.
/// `features` are rows × features, `labels` one a row.
void warn_of_copied_label(const TableFile& table, const TableRoles& roles,
                          std::span<const double> features, std::span<const std::int32_t> labels,
                          std::vector<std::string>& warnings);

/// Warns of each feature that equals a target of a regression in all rows; `targets` are rows ×
/// targets.
void warn_of_copied_target(const TableFile& table, const TableRoles& roles,
                           std::span<const double> features, std::span<const double> targets,
                           std::vector<std::string>& warnings);

}  // namespace sotto
