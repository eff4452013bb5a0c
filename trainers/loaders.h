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

}  // namespace sotto
