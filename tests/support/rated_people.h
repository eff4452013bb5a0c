// A file of ratings among people of two camps, who trust each other within and distrust the others.
#pragma once

#include <string>

#include <fmt/format.h>

#include <sotto/base/philox.h>

#include "support/scratch.h"

namespace sotto::test {

class RatedPeople {
 public:
  /// Ratings above 0 are at most `most`; signs are the same for all.
  explicit RatedPeople(int most = 5) {
    RandomStream draws({.seed = 5, .purpose = Purpose::test});
    std::string text = "source,target,rating,time\n";
    for (int from = 1; from <= kPeople; ++from) {
      for (int to = 1; to <= kPeople; ++to) {
        if (from != to && draws.below(4) == 0) {
          // The last people are distrusted by most, and the others trusted by most.
          const bool odd = draws.below(10) == 0;
          const bool trusted = (to <= kTrusted) != odd;
          text += fmt::format("{},{},{},{}\n", from, to, trusted ? 1 + to % most : -2, from * to);
        }
      }
    }
    path_ = scratch_.write("ratings.csv", text).string();
  }
  /// The file's path.
  const std::string& path() const { return path_; }
  /// A task of these ratings; `more` are its parameters, "hidden=8,cache=3".
  std::string task(const std::string& more = "") const {
    return "graph:" + path_ + (more.empty() ? "" : ",") + more;
  }

 private:
  static constexpr int kPeople = 30;
  static constexpr int kTrusted = 20;

  Scratch scratch_;
  std::string path_;
};

}  // namespace sotto::test
