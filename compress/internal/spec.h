// Reads a compressor's specification, `NAME[:ARGUMENT…][,parameter=value…][/INNER]`, and refuses
// what it does not understand with the parameter, its value and what would do.
//
// A family's builder takes its arguments in order, then its parameters by name, and the
// specification behind a slash; `finish` refuses what nobody took. Views into the specification: it
// must outlive the reader. One thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace sotto::internal {

class SpecReader {
 public:
  explicit SpecReader(std::string_view spec);

  std::string_view name() const { return name_; }

  /// The next argument, an integer in [low, high].
  int take_integer(std::string_view label, int low, int high);
  /// The next argument, a decimal number; the caller judges its range with `reject`.
  double take_double(std::string_view label, std::string_view wanted);
  float take_float(std::string_view label, std::string_view wanted);

  /// A named parameter's decimal number, if it is given; the caller judges its range.
  std::optional<double> number(std::string_view parameter);
  /// A named parameter's integer in [low, high], if it is given.
  std::optional<int> integer(std::string_view parameter, int low, int high);
  /// `chunk=N`, 0 … 2^32 − 1, if it is given.
  std::optional<std::size_t> chunk();
  /// The index of a named parameter's value among `choices`, if it is given.
  std::optional<std::size_t> choice(std::string_view parameter,
                                    std::initializer_list<std::string_view> choices);

  /// The text after the first '/', if there is any.
  std::optional<std::string_view> take_inner();

  /// Refuses arguments and parameters that were not taken.
  void finish() const;

  /// Throws Error: `label` has a value that will not do.
  [[noreturn]] void reject(std::string_view label, std::string_view value,
                           std::string_view wanted) const;

 private:
  struct Parameter {
    std::string_view name;
    std::string_view value;
    bool taken = false;
  };

  std::string_view take_argument(std::string_view label, std::string_view wanted);
  std::optional<std::string_view> take_parameter(std::string_view name);
  int in_range(std::string_view label, std::string_view text, int low, int high) const;
  void add_parameter(std::string_view text);

  std::string_view spec_;
  std::string_view name_;
  std::vector<std::string_view> arguments_;
  std::vector<Parameter> parameters_;
  std::optional<std::string_view> inner_;
  std::size_t next_argument_ = 0;
};

}  // namespace sotto::internal
