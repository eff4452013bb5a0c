// Data sets from files.
//
// Files are not trusted: whatever is wrong with one gives an Error that names the file, the place
// (line or byte) and what was expected there; memory stays in proportion to the file. Nothing is
// kept open. Pure functions of the files; thread-safe.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>

#include <sotto/trainers/dataset.h>

namespace sotto {

/// MNIST and its relatives in IDX format, plain or gzip: `train-images-idx3-ubyte[.gz]` and
/// `train-labels-idx1-ubyte[.gz]` to train, `t10k-…` to test. Where only one of the two pairs is
/// there, its first 80 % train and the rest test. Pixels become 0 … 1; labels are 0 … 9.
std::shared_ptr<const Dataset> load_mnist(const std::filesystem::path& directory);

/// A table of numbers: comma-separated, a header in the first line, fields in double quotes or not.
/// The label is the column called `label` or `class` (in any case), else the last; its distinct
/// values, at most 1000, are the classes in ascending order. The other columns are features,
/// shifted and scaled to mean 0 and deviation 1 over the training rows. A fixed shuffle sends 80 %
/// of the rows to the training set and the rest to the test set.
std::shared_ptr<const Dataset> load_csv(const std::filesystem::path& file);

/// Room occupancy (Candanedo and Feldheim 2016, UCI 357): `datatraining.txt` to train,
/// `datatest.txt` and `datatest2.txt` to test. The date and the row numbers, which the header does
/// not name, are left out; features are scaled as by load_csv.
std::shared_ptr<const Dataset> load_occupancy(const std::filesystem::path& directory);

/// The sparse format of LIBSVM: `LABEL INDEX:VALUE INDEX:VALUE …`, indices ascending from 1 to at
/// most 2^20, values used as they are. The distinct labels, at most 1000, are the classes in
/// ascending order; split as by load_csv. `features` is the number of features where the file does
/// not use the last ones; 0 takes the largest index.
std::shared_ptr<const Dataset> load_libsvm(const std::filesystem::path& file,
                                           std::size_t features = 0);

/// Prediction of the next character: the features are the `context` bytes before it (1 … 256), each
/// one-hot over the bytes that occur in the file; the label is the byte. A model of sequences
/// predicts the byte behind each of them. The first 90 % of the text train; up to 4096 evenly
/// spaced places of the rest test.
std::shared_ptr<const Dataset> load_text(const std::filesystem::path& file,
                                         std::size_t context = 8);

}  // namespace sotto
