// Data sets from files.
//
// Files are not trusted: whatever is wrong with one gives an Error that names the file, the place
// (line or byte) and what was expected there; memory stays in proportion to the file. Nothing is
// kept open. Pure functions of the files; thread-safe.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <sotto/trainers/data/dataset.h>
#include <sotto/trainers/data/shared_scaling.h>

namespace sotto {

/// The images of a folder that are wanted.
struct ImageRequest {
  std::string task{};  ///< the task as it is written, "mnist:data", for advice; may be empty
  std::string set{};   ///< "emnist-letters", or "letters"; empty where the folder has one set
};

/// MNIST and its relatives in IDX format, plain or gzip: `train-images-idx3-ubyte[.gz]` and
/// `train-labels-idx1-ubyte[.gz]` to train, `t10k-…` to test; `idx3` may stand behind a dot, and
/// EMNIST's names are known (`emnist-letters-train-images-idx3-ubyte`, `…-test-…`). Where only one
/// of the two pairs is there, its first 80 % train and the rest test. Pixels become 0 … 1, and so
/// do integers from 0 to 255; floating-point ones that are scaled already stay as they are. Labels
/// are 0 … 9, and those of EMNIST's sets as published.
std::shared_ptr<const Dataset> load_mnist(const std::filesystem::path& directory,
                                          const ImageRequest& request = {});

/// Options of reading a table.
struct TableRequest {
  /// The task as it is written, "csv:data.csv", for advice; empty where it has no parameters.
  std::string task{};
  std::vector<std::string> targets{};  ///< columns to be predicted; none: found by their names
  std::vector<std::string> drop{};     ///< columns to leave out
  bool regression = false;             ///< numbers are to be predicted, not classes
  bool headerless = false;             ///< the first line is a row; columns are called 1, 2, …
  bool skip_missing = false;           ///< rows without a value are left out, not refused
  /// Scales columns and targets in place of their own means and deviations; null: none. It
  /// outlives the call.
  const SharedScaling* scaling = nullptr;

  /// The task with a further parameter: "csv:data.csv,drop=city".
  std::string with(std::string_view parameter, std::string_view value = "") const;
};

/// A table of numbers in a text: a header in the first line, fields set apart by commas,
/// semicolons, tabs, bars or blanks, in double quotes or not; gzip and UTF-16 are read too. The
/// column to be predicted is the one called `label`, `class` or `target` (in any case), else the
/// last; its distinct values, numbers or words, at most 1000, are the classes in ascending order.
/// The other columns are features, shifted and scaled to mean 0 and deviation 1 over the training
/// rows, or as `request.scaling` says; so are the targets of a regression. A fixed shuffle sends 80
/// % of the rows to the training set and the rest to the test set.
std::shared_ptr<const Dataset> load_csv(const std::filesystem::path& file,
                                        const TableRequest& request = {});

/// Room occupancy (Candanedo and Feldheim 2016, UCI 357): `datatraining.txt` to train,
/// `datatest.txt` and `datatest2.txt` to test. The date and the row numbers, which the header does
/// not name, are left out; features are scaled as by load_csv.
std::shared_ptr<const Dataset> load_occupancy(const std::filesystem::path& directory);

/// How a file of sparse rows is to be read.
struct SparseRequest {
  /// The task as it is written, "libsvm:rows.txt", for advice; empty where it has no parameters.
  std::string task{};
  std::size_t features = 0;  ///< number of features; 0 takes the largest index
  bool regression = false;   ///< labels are numbers to be predicted, not classes
  bool zero_based = false;   ///< indices count from 0
};

/// The sparse format of LIBSVM: `LABEL [qid:GROUP] INDEX:VALUE INDEX:VALUE …`, indices from 1 to at
/// most 2^20, each once, values used as they are; groups are passed over. The distinct labels, at
/// most 1000, are the classes in ascending order; split, and targets of a regression scaled, as by
/// load_csv.
std::shared_ptr<const Dataset> load_libsvm(const std::filesystem::path& file,
                                           const SparseRequest& request = {});

/// Prediction of the next character of a text, gzip or not: the features are the `context` bytes
/// before it (1 … 256), each one-hot over the bytes that occur in the file; the label is the byte.
/// A model of sequences predicts the byte behind each of them. The first 90 % of the text train; up
/// to 4096 evenly spaced places of the rest test.
std::shared_ptr<const Dataset> load_text(const std::filesystem::path& file,
                                         std::size_t context = 8);

}  // namespace sotto
