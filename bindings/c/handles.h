// What stands behind the handles of sotto.h that other objects are made with. Each is made and
// destroyed by its functions alone; what is made with one shares or copies what it holds, so that
// either may go first.
#pragma once

#include <atomic>
#include <memory>
#include <string_view>

#include <sotto/base/parameter_layout.h>
#include <sotto/comm/store.h>

#include "sotto.h"

struct sotto_layout {
  sotto::ParameterLayout blocks;
};

struct sotto_store {
  std::shared_ptr<sotto::Store> store;
};

struct sotto_interrupt {
  static constexpr std::string_view kKind = "interrupt";

  std::shared_ptr<std::atomic<bool>> flag = std::make_shared<std::atomic<bool>>(false);
};

namespace sotto::c {

/// The tensors of a layout; none where the caller gives no layout.
inline ParameterLayout blocks_of(const sotto_layout* layout) {
  return layout == nullptr ? ParameterLayout() : layout->blocks;
}

}  // namespace sotto::c
