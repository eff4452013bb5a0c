// A table's task, taken apart: `csv:FILE[,target=COLUMN][,regression]…`.
//
// Private to the loaders. Pure functions; thread-safe.
#pragma once

#include <filesystem>
#include <string_view>

#include <sotto/trainers/data/loaders.h>

namespace sotto {

/// A file, and what is wanted of it.
struct TableTask {
  std::filesystem::path file;
  TableRequest request;
};

/// Throws Error for what is no such specification.
TableTask parse_table_task(std::string_view spec);

}  // namespace sotto
