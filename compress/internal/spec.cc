#include "spec.h"

#include <cmath>
#include <string>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <sotto/base/error.h>
#include <sotto/base/number.h>

#include "chunks.h"

namespace sotto::internal {
namespace {

/// Cuts `text` at each `separator`; always gives at least one piece.
std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> pieces;
  for (;;) {
    const std::size_t at = text.find(separator);
    pieces.push_back(text.substr(0, at));
    if (at == std::string_view::npos) {
      return pieces;
    }
    text.remove_prefix(at + 1);
  }
}

std::string integer_range(int low, int high) {
  return fmt::format("an integer from {} to {}", low, high);
}

}  // namespace

SpecReader::SpecReader(std::string_view spec) : spec_(spec) {
  if (const std::size_t slash = spec.find('/'); slash != std::string_view::npos) {
    inner_ = spec.substr(slash + 1);
    spec = spec.substr(0, slash);
  }
  const auto pieces = split(spec, ',');
  arguments_ = split(pieces.front(), ':');
  name_ = arguments_.front();
  arguments_.erase(arguments_.begin());
  for (std::size_t i = 1; i < pieces.size(); ++i) {
    add_parameter(pieces[i]);
  }
}

void SpecReader::add_parameter(std::string_view text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string_view::npos) {
    reject("parameter", text, "parameters are written name=value");
  }
  const Parameter parameter{text.substr(0, equals), text.substr(equals + 1)};
  for (const Parameter& other : parameters_) {
    if (other.name == parameter.name) {
      reject(parameter.name, parameter.value,
             fmt::format("it is given twice: {} stands before it", other.value));
    }
  }
  parameters_.push_back(parameter);
}

std::string_view SpecReader::take_argument(std::string_view label, std::string_view wanted) {
  if (next_argument_ == arguments_.size()) {
    reject(label, "", fmt::format("it is missing; {} would do", wanted));
  }
  return arguments_[next_argument_++];
}

int SpecReader::take_integer(std::string_view label, int low, int high) {
  return in_range(label, take_argument(label, integer_range(low, high)), low, high);
}

std::optional<int> SpecReader::integer(std::string_view parameter, int low, int high) {
  const auto text = take_parameter(parameter);
  return text ? std::optional(in_range(parameter, *text, low, high)) : std::nullopt;
}

int SpecReader::in_range(std::string_view label, std::string_view text, int low, int high) const {
  const auto value = parse_number<int>(text, low, high);
  if (!value) {
    reject(label, text, integer_range(low, high) + " would do");
  }
  return *value;
}

double SpecReader::take_double(std::string_view label, std::string_view wanted) {
  const auto text = take_argument(label, wanted);
  const auto value = parse_number<double>(text);
  if (!value || std::isinf(*value)) {
    reject(label, text, fmt::format("{} would do", wanted));
  }
  return *value;
}

float SpecReader::take_float(std::string_view label, std::string_view wanted) {
  const auto text = take_argument(label, wanted);
  const auto value = parse_number<float>(text);
  if (!value || std::isinf(*value)) {
    reject(label, text, fmt::format("{} would do", wanted));
  }
  return *value;
}

std::optional<std::string_view> SpecReader::take_parameter(std::string_view name) {
  for (Parameter& parameter : parameters_) {
    if (parameter.name == name) {
      parameter.taken = true;
      return parameter.value;
    }
  }
  return std::nullopt;
}

std::optional<double> SpecReader::number(std::string_view parameter) {
  const auto text = take_parameter(parameter);
  const auto value = text ? parse_number<double>(*text) : std::nullopt;
  if (text && (!value || std::isinf(*value))) {
    reject(parameter, *text, "a finite number would do");
  }
  return value;
}

std::optional<std::size_t> SpecReader::chunk() {
  const auto text = take_parameter("chunk");
  if (!text) {
    return std::nullopt;
  }
  const auto value = parse_number<std::uint64_t>(*text, 0, kMostChunk);
  if (!value) {
    reject("chunk", *text,
           fmt::format("a number of elements from 1 to {}, or 0 for the whole vector, would do",
                       kMostChunk));
  }
  return static_cast<std::size_t>(*value);
}

std::optional<std::size_t> SpecReader::choice(std::string_view parameter,
                                              std::initializer_list<std::string_view> choices) {
  const auto text = take_parameter(parameter);
  if (!text) {
    return std::nullopt;
  }
  std::size_t index = 0;
  for (const std::string_view candidate : choices) {
    if (*text == candidate) {
      return index;
    }
    ++index;
  }
  reject(parameter, *text, fmt::format("one of {} would do", fmt::join(choices, ", ")));
}

std::optional<std::string_view> SpecReader::take_inner() { return std::exchange(inner_, {}); }

void SpecReader::finish() const {
  if (inner_) {
    reject("after '/'", *inner_, fmt::format("{} takes no other compressor", name_));
  }
  if (next_argument_ < arguments_.size()) {
    reject("argument", arguments_[next_argument_],
           fmt::format("{} takes {} of them", name_, next_argument_));
  }
  for (const Parameter& parameter : parameters_) {
    if (!parameter.taken) {
      reject(parameter.name, parameter.value,
             fmt::format("{} has no parameter of this name", name_));
    }
  }
}

void SpecReader::reject(std::string_view label, std::string_view value,
                        std::string_view wanted) const {
  throw Error("compressor",
              fmt::format("{}: {}: '{}' is refused: {}", spec_, label, value, wanted));
}

}  // namespace sotto::internal
