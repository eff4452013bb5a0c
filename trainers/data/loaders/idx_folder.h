// Which IDX files are in a folder: `[SET-]train-images-idx3-ubyte[.gz]` and their relatives, with
// "labels" for images, "t10k" or "test" for train, and a dot for the hyphen in front of idx.
//
// Private to the loaders. Thread-safe.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace sotto {

/// Images and their labels.
struct IdxPair {
  std::filesystem::path images;
  std::filesystem::path labels;
};

/// The files of one data set; at least one pair is there.
struct IdxFolder {
  std::string set;  ///< "emnist-letters"; empty for MNIST and what is called like it
  std::optional<IdxPair> train;
  std::optional<IdxPair> test;
};

/// Looks a folder through. `set` names one of several data sets, "emnist-letters" or "letters";
/// empty where there is one. `task` is the task as it is written, for advice. Throws Error for a
/// folder with none, or with several of which none is named, and for images without labels.
IdxFolder find_idx_files(const std::filesystem::path& folder, const std::string& set,
                         const std::string& task);

}  // namespace sotto
