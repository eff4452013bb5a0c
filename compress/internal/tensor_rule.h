// One rule of a per-tensor specification, `SELECTOR=SPEC` (per_tensor.h). A value; thread-safe.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include <sotto/base/parameter_layout.h>

namespace sotto::internal {

class TensorRule {
 public:
  /// Throws Error for what is no rule; `spec` is judged by who builds it.
  explicit TensorRule(std::string_view text);

  bool fits(const ParameterBlock& tensor) const;
  /// Whether it goes by names, so that fitting nothing is a mistake.
  bool by_name() const { return kind_ == Kind::name; }
  const std::string& selector() const { return selector_; }
  const std::string& spec() const { return spec_; }

 private:
  enum class Kind { name, rank, size };

  std::string selector_;
  std::string spec_;
  Kind kind_ = Kind::name;
  std::size_t below_ = 0;  ///< of Kind::size
};

/// Whether the whole of `text` fits `glob`: * for any characters, ? for one.
bool fits_glob(std::string_view glob, std::string_view text);

}  // namespace sotto::internal
