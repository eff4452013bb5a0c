// Which columns of a table are features, which are to be predicted, and which are left out.
//
// Private to the loaders. Pure functions; thread-safe.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include <sotto/trainers/data/loaders.h>

#include "table.h"

namespace sotto {

/// A column that is not used, and why.
struct LeftOut {
  std::size_t column = 0;
  std::string why;     ///< reason in words, "it holds nothing"
  bool asked = false;  ///< the user asked for it
};

/// Columns by their place in the file.
struct TableRoles {
  std::vector<std::size_t> features;
  std::vector<std::size_t> targets;  ///< one column, or several for a regression
  std::vector<LeftOut> left_out;     ///< unused columns, each once
  /// The target is called so, or was named; else it is the last column.
  bool found_by_name = false;
};

/// Throws Error for names that are no names, that stand twice or that no column has, and where it
/// is not clear which column is to be predicted.
TableRoles choose_roles(const TableFile& table, const TableRequest& request);

/// Whether a row, given by its fields, lacks a value that is used.
bool lacks_value(const std::vector<std::string_view>& fields, const TableRoles& roles);

}  // namespace sotto
