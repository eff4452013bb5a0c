// JSON on its way out and in, for any basic_json of nlohmann's.
//
// Out: any bytes give valid JSON. In: what others wrote is bounded in its depth, and no object has
// a key twice.
//
// Pure functions; thread-safe.
#pragma once

#include <cstddef>
#include <iterator>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <sotto/base/error.h>

namespace sotto {

/// `json` as text, on one line or with `indent` blanks a level. NaN and infinities become null, as
/// JSON has neither; bytes that are not UTF-8 become U+FFFD.
template <typename Json>
std::string json_text(const Json& json, int indent = -1) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

namespace internal {

/// Walks over characters and knows in which line it is.
class LinedText {
 public:
  using iterator_category = std::forward_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  LinedText(const char* at, std::size_t* line) : at_(at), line_(line) {}
  reference operator*() const { return *at_; }
  LinedText& operator++() {
    *line_ += *at_ == '\n' ? 1U : 0U;
    ++at_;
    return *this;
  }
  LinedText operator++(int) {
    LinedText before = *this;
    ++*this;
    return before;
  }
  bool operator==(const LinedText& other) const { return at_ == other.at_; }

 private:
  const char* at_;
  std::size_t* line_;
};

/// "[json.exception.parse_error.101] parse error at line 1, …" without its front. It quotes what it
/// has read.
inline std::string_view json_complaint(std::string_view what) {
  constexpr std::size_t kLongest = 300;
  const std::size_t end = what.starts_with('[') ? what.find("] ") : std::string_view::npos;
  return excerpt(end == std::string_view::npos ? what : what.substr(end + 2), kLongest);
}

}  // namespace internal

/// Parses `text` as JSON, nested at most `most_depth` deep. Throws Error with the line for text
/// that is not JSON, for deeper nesting, and for a duplicate key, with the line of its first use.
template <typename Json>
Json parse_json(std::string_view text, std::size_t most_depth) {
  std::size_t line = 1;
  std::vector<std::map<std::string, std::size_t>> open;  ///< keys by their lines
  using Reached = typename Json::parse_event_t;
  const auto look = [&](int /*depth*/, Reached event, const Json& parsed) {
    if (event == Reached::object_start || event == Reached::array_start) {
      open.emplace_back();
      if (open.size() > most_depth) {
        throw Error("line " + std::to_string(line) + ": lists nested deeper than " +
                    std::to_string(most_depth));
      }
    } else if (event == Reached::object_end || event == Reached::array_end) {
      open.pop_back();
    } else if (event == Reached::key) {
      const auto [first, fresh] = open.back().emplace(parsed.template get<std::string>(), line);
      if (!fresh) {
        throw Error("line " + std::to_string(line) + ": \"" + first->first + "\" stands in line " +
                    std::to_string(first->second) + " already");
      }
    }
    return true;
  };
  try {
    return Json::parse(internal::LinedText(text.data(), &line),
                       internal::LinedText(text.data() + text.size(), &line), look);
  } catch (const typename Json::exception& error) {
    throw Error(std::string(internal::json_complaint(error.what())));
  }
}

}  // namespace sotto
