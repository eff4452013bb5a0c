// Selectors of tensors, by which a specification treats some tensors of a model apart:
//   GLOB      the whole name fits, with * for any characters and ? for one: *.bias, conv?.*
//   1d        tensors of one dimension or none: biases, normalizations
//   ends      the first and the last of at least three tensors of more dimensions: in most models
//             the embedding, or first layer, and the output layer
//   under:N   tensors of fewer than N elements
// Rules are written SELECTOR=SPEC, behind a default and with `;` between: "quant:4; head.*=fp16".
// Where several selectors fit a tensor, the first of these rules decides.
//
// Plain values and pure functions; thread-safe.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <sotto/base/parameter_layout.h>

namespace sotto {

class TensorSelector {
 public:
  /// Throws Error, which names `field`, for what is no selector.
  TensorSelector(std::string_view text, std::string_view field);

  /// As it is written.
  const std::string& text() const { return text_; }
  /// Whether it goes by names, so that fitting nothing is a mistake.
  bool by_name() const { return kind_ == Kind::name; }
  /// Whether it fits tensor number `index` of the layout.
  bool fits(const ParameterLayout& layout, std::size_t index) const;

 private:
  enum class Kind { name, rank, ends, size };

  std::string text_;
  Kind kind_ = Kind::name;
  std::size_t below_ = 0;  ///< of Kind::size
};

/// One rule of a specification.
struct SelectedSpec {
  TensorSelector selector;
  std::string spec;
};

/// A specification with rules.
struct SpecByTensor {
  std::string otherwise;  ///< for tensors that no selector fits
  std::vector<SelectedSpec> rules;
};

/// Reads "SPEC; SELECTOR=SPEC; …", blanks around `;` and the first `=` as one likes; the SPECs are
/// judged by who builds them. Throws Error, which names `field`, for what is no rule; `example` is
/// one.
SpecByTensor read_spec_by_tensor(std::string_view text, std::string_view field,
                                 std::string_view example);

/// The rule of each tensor, by number; that of `rules.size()` is the default. Throws Error, which
/// names `field`, for a rule by name that fits no tensor of several, and for one for which those
/// before it leave none.
std::vector<std::size_t> rule_of_each(std::span<const SelectedSpec> rules,
                                      const ParameterLayout& layout, std::string_view field);

/// Whether the whole of `text` fits `glob`: * for any characters, ? for one.
bool fits_glob(std::string_view glob, std::string_view text);

}  // namespace sotto
