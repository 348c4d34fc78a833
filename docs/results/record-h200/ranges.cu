#include <nvtx3/nvToolsExt.h>
#include <cuda_runtime.h>
__global__ void axpy(float *x, float a) { x[threadIdx.x + blockIdx.x * blockDim.x] *= a; }
int main() {
    float *x; cudaStream_t s;
    nvtxNameOsThreadA(1, "not a thread");
    cudaMalloc(&x, 1 << 20); cudaStreamCreate(&s);
    nvtxDomainHandle_t d = nvtxDomainCreateA("engine");
    nvtxStringHandle_t h = nvtxDomainRegisterStringA(d, "registered step");
    nvtxRangePushA("outer");
    for (int i = 0; i < 10; i++) {
        nvtxEventAttributes_t e = {};
        e.version = NVTX_VERSION; e.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
        e.colorType = NVTX_COLOR_ARGB; e.color = 0xff00ff00;
        e.payloadType = NVTX_PAYLOAD_TYPE_INT64; e.payload.llValue = i % 2;
        e.messageType = NVTX_MESSAGE_TYPE_REGISTERED; e.message.registered = h;
        nvtxDomainRangePushEx(d, &e);
        axpy<<<64, 256, 0, s>>>(x, 2.f);
        nvtxDomainRangePop(d);
    }
    nvtxRangeId_t r = nvtxRangeStartA("async"); cudaMemcpyAsync(x, x + 1024, 4096, cudaMemcpyDeviceToDevice, s); cudaMemsetAsync(x, 0, 4096, s);
    cudaEvent_t ev; cudaEventCreate(&ev); cudaEventRecord(ev, s); cudaEventSynchronize(ev);
    cudaGraph_t g; cudaGraphExec_t x2;
    cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal);
    for (int i = 0; i < 5; i++) axpy<<<64, 256, 0, s>>>(x, 2.f);
    cudaStreamEndCapture(s, &g); cudaGraphInstantiate(&x2, g, 0);
    for (int i = 0; i < 7; i++) cudaGraphLaunch(x2, s);
    cudaDeviceSynchronize(); nvtxRangeEnd(r); nvtxMarkA("done"); nvtxRangePop();
    return 7;
}
