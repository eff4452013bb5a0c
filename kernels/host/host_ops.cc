#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "sotto/kernels/host/host_ops.cc"
#include <hwy/foreach_target.h>

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace sotto::HWY_NAMESPACE {

const char* target_name() { return hwy::TargetName(HWY_TARGET); }

}  // namespace sotto::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "host_ops.h"
#include "targets.h"

namespace sotto {

HWY_EXPORT(target_name);

const Ops& host_ops() {
  static const HostOps ops;
  return ops;
}

std::string_view HostOps::name() const { return HWY_DYNAMIC_DISPATCH(target_name)(); }

std::vector<std::int64_t> host_targets() {
  use_host_target(0);
  return hwy::SupportedAndGeneratedTargets();
}

void use_host_target(std::int64_t target) {
  hwy::SetSupportedTargetsForTest(target);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

}  // namespace sotto
#endif  // HWY_ONCE
