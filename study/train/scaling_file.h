// Files of sums (trainers/data/table_sums.h) and of scalings (trainers/data/shared_scaling.h),
// which sites send to each other, as TOML:
//
//   sotto-column-sums = 1               sotto-scaling = 1
//   rows = 1203.2                       [[site]]
//   [privacy]                           sums = "SHA-256 of its file"
//   noise-multiplier = 4.1              noise-multiplier = 4.1
//   epsilon = 1                         [[column]]
//   delta = 1e-05                       name = "age"
//   [[column]]                          role = "feature"
//   name = "age"                        mean = 54.1
//   role = "feature"                    deviation = 17.9
//   least = 0
//   largest = 120
//   sum = -12.7
//   squares = 204.1
//
// A file of sums without [privacy] has no noise. Reads at most 16 MiB, and refuses what it does not
// know. Thread-safe.
#pragma once

#include <string>

#include <sotto/trainers/data/shared_scaling.h>
#include <sotto/trainers/data/table_sums.h>

namespace sotto::study {

/// The sums in the file at `path`. Throws Error with file and line; `option` names the file where
/// it cannot be read.
TableSums read_table_sums(std::string_view option, const std::string& path);

/// The contents of a file of sums; ε and δ are written where there is noise.
std::string table_sums_text(const TableSums& sums);

/// The scaling in the file at `path`. Throws Error with file and line; `option` names the file
/// where it cannot be read.
SharedScaling read_scaling(std::string_view option, const std::string& path);

/// The contents of a file with this scaling.
std::string scaling_text(const SharedScaling& scaling);

}  // namespace sotto::study
