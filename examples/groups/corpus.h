// Documents for topics.cc: read from a text, or drawn.
#pragma once

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <functional>
#include <map>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include <sotto/base/philox.h>

inline constexpr std::uint64_t kSeed = 7;

/// Documents as numbers of words.
struct Corpus {
  std::vector<std::vector<std::uint32_t>> documents;
  std::size_t words = 0;  ///< V

  std::size_t tokens() const {
    return std::accumulate(
        documents.begin(), documents.end(), std::size_t{0},
        [](std::size_t sum, const auto& document) { return sum + document.size(); });
  }
};

/// 600 documents of 40 words, each mostly of one of 5 topics of 60 words of their own.
inline Corpus drawn_corpus() {
  constexpr std::size_t kDrawnTopics = 5;
  constexpr std::size_t kOwnWords = 60;
  Corpus corpus{.documents = std::vector<std::vector<std::uint32_t>>(600),
                .words = kDrawnTopics * kOwnWords};
  sotto::RandomStream random({.seed = kSeed});
  for (auto& document : corpus.documents) {
    const std::uint64_t main = random.below(kDrawnTopics);
    for (int token = 0; token < 40; ++token) {
      const std::uint64_t topic = random.below(5) > 0 ? main : random.below(kDrawnTopics);
      document.push_back(static_cast<std::uint32_t>(topic * kOwnWords + random.below(kOwnWords)));
    }
  }
  return corpus;
}

/// The documents of a text, of letters alone; words that come up less than 5 times, and the 60 that
/// come up most, are left out.
inline Corpus read_corpus(const char* path) {
  std::ifstream in(path);
  std::vector<std::vector<std::string>> documents(1);
  for (std::string line; std::getline(in, line);) {
    if (line.empty()) {
      documents.emplace_back();
    }
    std::string word;
    for (const char c : line + " ") {
      if (std::isalpha(static_cast<unsigned char>(c)) != 0) {
        word += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
      } else if (!word.empty()) {
        documents.back().push_back(std::move(word));
        word.clear();
      }
    }
  }
  std::map<std::string, std::size_t> times;
  for (const auto& document : documents) {
    for (const std::string& word : document) {
      ++times[word];
    }
  }
  std::vector<std::pair<std::size_t, std::string>> by_times;
  for (const auto& [word, count] : times) {
    by_times.emplace_back(count, word);
  }
  std::ranges::sort(by_times, std::greater());
  std::map<std::string, std::uint32_t> numbers;
  for (std::size_t k = 60; k < by_times.size() && by_times[k].first >= 5; ++k) {
    numbers.emplace(by_times[k].second, static_cast<std::uint32_t>(numbers.size()));
  }
  Corpus corpus{.documents = {}, .words = numbers.size()};
  for (const auto& document : documents) {
    std::vector<std::uint32_t> known;
    for (const std::string& word : document) {
      if (const auto number = numbers.find(word); number != numbers.end()) {
        known.push_back(number->second);
      }
    }
    if (!known.empty()) {
      corpus.documents.push_back(std::move(known));
    }
  }
  return corpus;
}
