// Whole numbers of a command line.
#pragma once

#include <charconv>
#include <string_view>
#include <system_error>

#include <fmt/format.h>

#include <sotto/base/error.h>

/// Throws Error for anything but a number from 1 on.
template <typename T>
T number(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || value < 1) {
    throw sotto::Error(fmt::format("{} is no number from 1 on", text));
  }
  return value;
}
