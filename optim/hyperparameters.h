// The hyperparameters of an algorithm: which it has is stated in its own file, and their values are
// part of its specification, `NAME[:KEY=VALUE,…]`, e.g. "zeroone-adam:freeze=100,limit=16". A value
// that is a compressor's specification stands last: the commas in it are its own.
//
// Plain values, which own their text and view static tables; thread-safe as such.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <sotto/base/setting_text.h>
#include <sotto/compress/compressor.h>

namespace sotto {

/// The type of a hyperparameter's values.
enum class HyperparameterKind {
  count,       ///< whole numbers
  real,        ///< real numbers, as float32 holds them
  choice,      ///< one of the words of Hyperparameter::choices
  compressor,  ///< a specification of make_compressor; the last entry of a table
  text,        ///< the algorithm itself reads it; it stands alone behind the colon
};

/// One hyperparameter, as the algorithm's file states it and `sotto list` shows it.
struct Hyperparameter {
  std::string_view key;     ///< name in specifications, "clock"
  std::string_view symbol;  ///< symbol in the paper, "T"
  std::string_view help;
  HyperparameterKind kind = HyperparameterKind::count;
  double above = 0;  ///< values are larger, and `most` at most
  double most = std::numeric_limits<double>::infinity();
  std::span<const std::string_view> choices = {};  ///< the words, if the kind is choice
  /// Contract that a compressor needs, if the kind is compressor.
  ContractKind contract = ContractKind::any;
  std::string_view why = {};  ///< the reason of the bounds, or a value that would do
  /// The value where none is given: "4096"; "auto": the algorithm finds one itself; empty: one must
  /// be given.
  std::string_view fallback = {};
  /// Key of another hyperparameter without which this one does nothing.
  std::string_view needs = {};
  /// Computes the value where none is given, from the compressor and the model's dimension; not
  /// above 0: there is none. Null: `fallback` says it.
  double (*derive)(const Compressor& compressor, std::size_t dimension) = nullptr;
  /// Floats a parameter that a node keeps besides, with values other than the fallback.
  double floats = 0;
  /// Values other than the fallback compare what nodes send, as if all counted alike: they are not
  /// for nodes that have weights.
  bool for_equal_nodes = false;
  /// The setting of Optimizer and program that gives it too (OptimizerSettings), without dashes.
  std::string_view setting = {};
};

/// Values of an algorithm's hyperparameters.
class Hyperparameters {
 public:
  /// Holds nothing, for an algorithm that has none.
  Hyperparameters() = default;
  /// Holds the fallbacks of `table`; `algorithm`, the name, and `table` are static.
  Hyperparameters(std::string_view algorithm, std::span<const Hyperparameter> table);

  /// The hyperparameters of the algorithm.
  std::span<const Hyperparameter> table() const { return table_; }
  /// The entry of a key; null where the algorithm has none.
  const Hyperparameter* find(std::string_view key) const;

  /// Gives values as a specification does behind its colon: "freeze=100,limit=16", or what the
  /// algorithm itself reads. Throws Error for a key that the algorithm does not have, a value out
  /// of bounds, and a key that is given twice.
  void read(std::string_view text);
  /// Gives one value, which messages name as that of `setting`, or of the specification where that
  /// is empty. Throws Error as read does.
  void set(std::string_view key, std::string_view value, std::string_view setting = {});
  /// Gives one value, in place of one that was given. Throws Error as set does.
  void replace(std::string_view key, std::string_view value);
  /// Computes derived values that were not given. Throws Error for a compressor of which nothing
  /// can be derived.
  void derive(const Compressor& compressor, std::size_t dimension);
  /// Throws Error where a value is missing.
  void require_complete() const;

  /// Whether another value than the fallback was given or derived.
  bool has(std::string_view key) const { return value_of(key) != nullptr; }
  /// The whole number of a key, or its fallback. There must be one: require_complete was called,
  /// and the algorithm does not find it itself.
  std::uint64_t count(std::string_view key) const;
  /// The real number of a key, or its fallback, as count has it; derive was called.
  float real(std::string_view key) const;
  /// The whole number of a key; none where the algorithm finds it itself, or has no such key.
  std::optional<std::uint64_t> optional_count(std::string_view key) const;
  /// The real number of a key; none where it is yet to be derived, or has no such key.
  std::optional<double> optional_real(std::string_view key) const;
  /// Any value as text, or the fallback; empty where the algorithm has no such key.
  std::string_view text(std::string_view key) const;

  /// The text that read takes, in one form for equal values: given and derived values other than
  /// the fallbacks, in the table's order.
  std::string spec() const;

 private:
  struct Value {
    bool given = false;
    std::string text{};     ///< empty: the fallback
    std::string setting{};  ///< setting that gave the value
  };
  std::size_t index_of(std::string_view key) const;
  /// Null: the fallback stands.
  const std::string* value_of(std::string_view key) const;
  [[noreturn]] void refuse_key(std::string_view key) const;
  [[noreturn]] void refuse_value(const Hyperparameter& one, std::string_view value,
                                 std::string_view setting, const SettingText& reason) const;
  /// The one text of this value; empty for the fallback.
  std::string canonical(const Hyperparameter& one, std::string_view value,
                        std::string_view setting) const;

  std::string_view algorithm_;
  std::span<const Hyperparameter> table_;
  std::vector<Value> values_;  ///< values in the table's order
};

}  // namespace sotto
