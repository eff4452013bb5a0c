// Reports what a loader reads from a file, before any training: format, columns, classes, warnings
// and faults.
//
// Pure functions of the files; thread-safe.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <sotto/trainers/data/dataset.h>
#include <sotto/trainers/data/shared_scaling.h>

namespace sotto {

/// A column of a table.
struct ColumnFacts {
  std::string name;  ///< the column's name; empty where it has none
  std::string role;  ///< "feature", "target", "left out: it is empty"; empty where it is not known
  /// Kinds of its values: "numbers", "words", "true and false", "nothing"; several joined by "and".
  std::string holds;
  std::size_t missing = 0;
  std::optional<double> least{};  ///< the least of its numbers
  std::optional<double> largest{};
};

/// A class and its examples.
struct ClassFacts {
  std::string name;
  std::size_t train = 0;
  std::size_t test = 0;
};

/// How a text is written; of files that are no text nothing is set.
struct TextFacts {
  std::string encoding{};
  std::size_t gzip_members = 0;
  std::string separator{};  ///< separator of a table: "comma", "semicolon", …
  bool headerless = false;  ///< the table has no header
};

/// All that was seen.
struct DataCheck {
  std::string task;    ///< the specification that takes it, "csv:data.csv"
  std::string format;  ///< "a table", "sparse rows (LIBSVM)", "images (IDX)", …
  std::optional<TextFacts> text{};
  std::optional<std::size_t> rows{};  ///< rows of a table
  std::vector<ColumnFacts> columns{};
  std::optional<std::size_t> features{};
  std::optional<ImageShape> image{};
  std::size_t train = 0;  ///< training examples
  std::size_t test = 0;
  std::vector<ClassFacts> classes{};
  std::vector<std::string> targets{};  ///< names of a regression's targets
  std::vector<FeatureScaling> target_scaling{};
  std::vector<std::string> warnings{};
  std::string refusal{};  ///< reason why it cannot be trained on; empty where it can
};

/// Looks at the data of a task, "csv:data.csv,target=price", or at a file or folder of which the
/// task is found out. Throws Error only where nothing at all is to be seen; what its loader refuses
/// becomes `refusal`, as does a scaling that is not of its columns; null: none.
DataCheck check_data(std::string_view task_or_file, const SharedScaling* scaling = nullptr);

}  // namespace sotto
