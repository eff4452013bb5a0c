#include <sotto/study/rank_list.h>

#include <numeric>
#include <optional>
#include <set>

#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/base/number.h>

namespace sotto::study {
namespace {

/// Reads from the front of a text, past blanks.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : rest_(text) { skip_blanks(); }

  bool done() const { return rest_.empty(); }
  bool take(char c) {
    if (rest_.empty() || rest_.front() != c) {
      return false;
    }
    rest_.remove_prefix(1);
    skip_blanks();
    return true;
  }
  std::optional<Rank> number() {
    const auto rank = take_number<Rank>(rest_);
    skip_blanks();
    return rank;
  }

 private:
  void skip_blanks() {
    while (!rest_.empty() && rest_.front() == ' ') {
      rest_.remove_prefix(1);
    }
  }

  std::string_view rest_;
};

[[noreturn]] void refuse_list(std::string_view text, int nodes) {
  throw Error(
      fmt::format("'{}' names no nodes; write e.g. \"0-3, 7\" with numbers below {}, "
                  "\"all\", or a group of [nodes.groups]",
                  text, nodes));
}

}  // namespace

std::vector<Rank> parse_ranks(std::string_view text, int nodes) {
  if (text == "all") {
    std::vector<Rank> all(static_cast<std::size_t>(nodes));
    std::iota(all.begin(), all.end(), Rank{0});
    return all;
  }
  std::set<Rank> found;
  Scanner in(text);
  do {
    const auto first = in.number();
    const auto last = first && in.take('-') ? in.number() : first;
    if (!first || !last || *last < *first || *last >= nodes) {
      refuse_list(text, nodes);
    }
    for (Rank rank = *first; rank <= *last; ++rank) {
      if (!found.insert(rank).second) {
        throw Error(fmt::format("'{}' names node {} twice; once is enough", text, rank));
      }
    }
  } while (in.take(','));
  if (!in.done()) {
    refuse_list(text, nodes);
  }
  return {found.begin(), found.end()};
}

}  // namespace sotto::study
