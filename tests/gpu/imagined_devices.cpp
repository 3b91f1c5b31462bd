// A CUDA device and an Apple GPU (mps) that torch's CPU build believes in: tensors can be placed on them under
// FakeTensorMode, autograd runs, and generators and pinned memory can be asked for.
#include <ATen/EmptyTensor.h>
#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <ATen/detail/MPSHooksInterface.h>
#include <c10/core/CPUAllocator.h>
#include <c10/core/GeneratorImpl.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

#include <cstdlib>
#include <cstring>

namespace {

// Torch allows one kind of accelerator in a process: IMAGINED_DEVICE names it.
bool imagined(const char* name) {
  const char* wanted = std::getenv("IMAGINED_DEVICE");
  return wanted != nullptr && std::strcmp(wanted, name) == 0;
}

template <c10::DeviceType kType>
struct Guard final : c10::impl::NoOpDeviceGuardImpl<kType> {
  static c10::Device device() { return c10::Device(kType, 0); }
  c10::Device getDevice() const override { return device(); }
  c10::Device exchangeDevice(c10::Device) const override { return device(); }
  c10::Stream getStream(c10::Device) const noexcept override { return c10::Stream(c10::Stream::DEFAULT, device()); }
  c10::Stream exchangeStream(c10::Stream) const noexcept override { return getStream(device()); }
};

// As those of GPUs: a seed and an offset, both known to the host.
template <c10::DeviceType kType, c10::DispatchKey kKey>
struct Generator final : c10::GeneratorImpl {
  Generator() : c10::GeneratorImpl(c10::Device(kType, 0), c10::DispatchKeySet(kKey)) {}
  void set_current_seed(uint64_t seed) override { seed_ = seed; offset_ = 0; }
  uint64_t current_seed() const override { return seed_; }
  uint64_t seed() override { return seed_; }
  void set_offset(uint64_t offset) override { offset_ = offset; }
  uint64_t get_offset() const override { return offset_; }
  void set_state(const c10::TensorImpl&) override {}
  c10::intrusive_ptr<c10::TensorImpl> get_state() const override {
    at::Tensor state = at::detail::empty_cpu({16}, at::kByte, {}, {}, {}, {});
    std::memcpy(state.data_ptr(), &seed_, 8);
    std::memcpy(static_cast<char*>(state.data_ptr()) + 8, &offset_, 8);
    return state.getIntrusivePtr();
  }
  Generator* clone_impl() const override {
    auto* copy = new Generator();
    copy->seed_ = seed_;
    copy->offset_ = offset_;
    return copy;
  }
  uint64_t seed_ = 0, offset_ = 0;
};

struct CUDAHooks final : at::CUDAHooksInterface {
  explicit CUDAHooks(at::CUDAHooksArgs) {}
  void init() const override {}
  bool hasCUDA() const override { return imagined("cuda"); }
  bool isBuilt() const override { return imagined("cuda"); }
  bool isAvailable() const override { return imagined("cuda"); }
  bool hasPrimaryContext(c10::DeviceIndex) const override { return true; }
  c10::DeviceIndex deviceCount() const override { return 1; }
  c10::DeviceIndex current_device() const override { return 0; }
  c10::DeviceIndex getCurrentDevice() const override { return 0; }
  int getNumGPUs() const override { return 1; }
  bool isPinnedPtr(const void*) const override { return true; }
  c10::Allocator* getPinnedMemoryAllocator() const override { return c10::GetCPUAllocator(); }
  at::Generator getNewGenerator(c10::DeviceIndex) const override {
    return at::make_generator<Generator<c10::DeviceType::CUDA, c10::DispatchKey::CUDA>>();
  }
};

struct MPSHooks final : at::MPSHooksInterface {
  void init() const override {}
  bool hasMPS() const override { return imagined("mps"); }
  bool isBuilt() const override { return imagined("mps"); }
  bool isAvailable() const override { return imagined("mps"); }
  bool hasPrimaryContext(c10::DeviceIndex) const override { return true; }
  c10::DeviceIndex deviceCount() const override { return 1; }
  c10::DeviceIndex getCurrentDevice() const override { return 0; }
  at::Generator getNewGenerator(c10::DeviceIndex) const override {
    return at::make_generator<Generator<c10::DeviceType::MPS, c10::DispatchKey::MPS>>();
  }
};

}  // namespace

namespace c10::impl {
C10_REGISTER_GUARD_IMPL(CUDA, Guard<DeviceType::CUDA>)
C10_REGISTER_GUARD_IMPL(MPS, Guard<DeviceType::MPS>)
}
namespace at {
C10_REGISTER_CLASS(CUDAHooksRegistry, CUDAHooks, CUDAHooks)
C10_REGISTER_CLASS(MPSHooksRegistry, MPSHooks, MPSHooks)
}
